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

  /// Allocates the weights, outside the stages that compute them, because a later stage multiplies them.
  void declare();
  /// Resets the maximum and the sums of the rows.
  void begin(Scopes& rows);
  /// Computes the weights of a tile's scores in f32; returns the factor of the sums so far, by row.
  std::vector<kernel::Value> take(Scopes& rows, const ScorePosition& position, kernel::Value scores,
                                  kernel::Value thread);
  /// Rounds them to the dtype of the matmul. Before it, the matmul of the weights before may still read its operand:
  /// these use the same registers.
  void round_weights();
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
  kernel::Value all_inside(const ScorePosition& tile, kernel::Value thread);
  kernel::Value masked(const Scope& point, kernel::Value value, kernel::Value otherwise);
  kernel::Value reduce(ScalarOp op, kernel::Value own, kernel::Value thread);
  kernel::Buffer registers(DType dtype, const char* name);
  void find_powers();
  bool needs(int value, int other, const std::vector<int>& known) const;
  bool is_exponential(int value) const;

  /// The registers of a tile.
  struct Tile {
    kernel::Buffer scores, arguments;       ///< the same if the scores are needed for the arguments alone
    kernel::Value whole;                    ///< no column is masked by a comparison or past the end
    kernel::Value scale;                    ///< the factor of the arguments in memory, if there is a scale
    std::vector<kernel::Value> subtracted;  ///< by row
  };
  std::vector<kernel::Value> largest(Scopes& rows, const ScorePosition& tile, const Tile& in, kernel::Value thread);
  void add_terms(Scopes& rows, const ScorePosition& tile, const Tile& in, kernel::Value thread, bool whole);
  void add_powers(const Tile& in);

  const AttentionPlan& plan_;
  const OnlineSoftmax& online_;
  KernelContext& context_;
  kernel::Builder& b_;
  ElementwiseEmitter& emitter_;
  const ElementwiseProgram& program_;
  /// Maxima below it are multiplied by log2 e before they are subtracted. The rounding of this product multiplies the
  /// weights of a tile by up to 1 + 4e-5, where bf16 rounds by up to 4e-3 and f16 by 5e-4. A larger maximum, such as
  /// one of masked columns alone, is subtracted first.
  static constexpr double most_of_powers = 256;

  int columns_, score_, result_;
  bool reads_scores_ = false;       ///< other than for the arguments
  bool takes_powers_ = false;       ///< sums and weights are exponentials
  std::optional<double> scale_;     ///< of the scores in whole tiles
  kernel::Buffer terms_, weights_;  ///< weights of the thread, for the latest tile: in f32, and rounded
  std::vector<Row> rows_;
};

}  // namespace lathe::gpu
