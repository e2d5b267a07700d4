#pragma once

#include <memory>

#include "passes/gpu/attention/attention_online.h"
#include "passes/gpu/attention/attention_plan.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe::gpu {

/// The softmax of a tile's scores, in the register layout of wgmma. The resulting weights have the layout of a left
/// operand of wgmma.
class WgmmaSoftmax : private WgmmaPositions {
 public:
  using Scope = ElementwiseEmitter::Scope;
  using Scopes = std::vector<std::unique_ptr<Scope>>;  ///< by row of the thread

  /// For tiles of `columns` columns.
  WgmmaSoftmax(const AttentionPlan& plan, KernelContext& context, ElementwiseEmitter& emitter, int columns);

  /// Returns the thread's rows of the block that starts at row `first`; rows past the end repeat the last one.
  Scopes rows(kernel::Value outer, kernel::Value first, kernel::Value thread, const Scope* top);

  /// Resets the maximum and the sums of the rows.
  void begin(Scopes& rows);
  /// Processes a tile's scores; returns the factor of the sums so far, by row.
  std::vector<kernel::Value> take(Scopes& rows, const ScorePosition& tile, kernel::Value scores,
                                  kernel::Value thread);
  /// Returns the weights of the tile's columns from 64 * part on.
  kernel::Value weights(int part);
  /// Binds the reductions in the rows; returns the final factor of the sums, by row.
  std::vector<kernel::Value> finish(Scopes& rows, kernel::Value thread);

 private:
  struct Row {
    RisingMaximum maximum;
    std::vector<kernel::Var> sums;
  };
  /// Receives every pair of every row: the row, the scope of the pair, and its index among the thread's elements.
  using Body = std::function<void(std::size_t, Scope&, kernel::Value)>;
  void each_pair(Scopes& rows, const ScorePosition& tile, kernel::Value thread, bool whole, const Body& body);
  /// Emits one version for tiles in which all columns are valid, and one for the others.
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
  kernel::Buffer weights_;  ///< of the thread, for the current tile
  std::vector<Row> rows_;
};

}  // namespace lathe::gpu
