#pragma once

#include <memory>

#include "passes/gpu/attention/attention_online.h"
#include "passes/gpu/attention/attention_plan.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe::gpu {

/// What the threads of warpgroups do with the scores of a tile, which lie where wgmma leaves them. The weights that
/// come of the scores have the positions of a left operand of wgmma.
class WgmmaSoftmax : private WgmmaPositions {
 public:
  using Scope = ElementwiseEmitter::Scope;
  using Scopes = std::vector<std::unique_ptr<Scope>>;  ///< by row of the thread

  /// Of tiles of so many columns; `product`: what is multiplied with the values.
  WgmmaSoftmax(const AttentionPlan& plan, KernelContext& context, ElementwiseEmitter& emitter, int columns);

  /// The thread's rows of those from `first` on; the last one of all again beyond the end.
  Scopes rows(kernel::Value outer, kernel::Value first, kernel::Value thread, const Scope* top);

  /// Nothing has been seen yet.
  void begin(Scopes& rows);
  /// Takes a tile's scores in; gives by row what the products so far are multiplied by.
  std::vector<kernel::Value> take(Scopes& rows, const ScorePosition& tile, kernel::Value scores,
                                  kernel::Value thread);
  /// The weights of the tile's columns from 64 * part on.
  kernel::Value weights(int part);
  /// Binds the reductions in the rows; gives by row what the products are multiplied by.
  std::vector<kernel::Value> finish(Scopes& rows, kernel::Value thread);

 private:
  struct Row {
    RisingMaximum maximum;
    std::vector<kernel::Var> sums;
  };
  /// Runs body(row, point, position) for every pair of every row: its scope, and its index among the thread's
  /// elements.
  using Body = std::function<void(std::size_t, Scope&, kernel::Value)>;
  void each_pair(Scopes& rows, const ScorePosition& tile, kernel::Value thread, bool whole, const Body& body);
  /// The same for tiles of which all columns count, and for the others.
  void each_pair(Scopes& rows, const ScorePosition& tile, kernel::Value thread, const Body& body);
  kernel::Value all_inside(const ScorePosition& tile, kernel::Value thread);
  kernel::Value masked(const Scope& point, kernel::Value value, kernel::Value otherwise);
  kernel::Value reduce(ScalarOp op, kernel::Value own, kernel::Value thread);
  bool wants_scores(int value) const;

  const AttentionPlan& plan_;
  const OnlineSoftmax& online_;
  KernelContext& context_;
  kernel::Builder& b_;
  ElementwiseEmitter& emitter_;
  const ElementwiseProgram& program_;
  int columns_, score_, result_;
  kernel::Buffer weights_;  ///< of the thread, for the present tile
  std::vector<Row> rows_;
};

}  // namespace lathe::gpu
