#pragma once

#include <memory>

#include "passes/gpu/attention/wgmma/wgmma_outputs.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe::gpu {

/// Elementwise code for the transposed scores of a tile, in the register layout of wgmma: a thread has two columns of
/// the attention, and two adjacent rows of each 8. It loads the data of its rows before it waits for their scores.
class WgmmaElementwise : private WgmmaPositions {
 public:
  using Scope = ElementwiseEmitter::Scope;

  WgmmaElementwise(const AttentionPlan& plan, KernelContext& context, ElementwiseEmitter& emitter,
                   const WgmmaOutputParts& parts, const WgmmaOutputTile& tile);

  /// Declares the registers of a tile's scores, inside the pipeline.
  void declare();
  const std::vector<kernel::Var>& scores() const { return scores_; }  ///< by matmul
  /// Computes the values that do not vary along the streamed positions, for the thread's own positions from `first`
  /// on; positions past the end repeat the last one.
  void enter(kernel::Value outer, kernel::Value first, kernel::Value thread, const Scope* top);
  /// Computes the saved values of the streamed positions from `first` on.
  void begin(kernel::Value first);
  /// Computes the weights of all output matmuls from the scores.
  void make_weights(kernel::Value first);
  /// Returns the weights of an output matmul as a left operand of wgmma; the registers that hold them.
  kernel::Value weights(std::size_t output) const;
  kernel::Buffer held_weights(std::size_t output) const { return weights_[output]; }

 private:
  void find_saved(int most_registers);
  bool depends_on(int value, int dim) const;
  kernel::Value inside(kernel::Value first);
  kernel::Value all_inside(kernel::Value first);
  Scope streamed_scope(kernel::Value first, kernel::Value mask);
  void bind_reductions(Scope& scope, kernel::Value row, int lanes, kernel::Value mask);
  /// Emits body(the first of the thread's two positions, i) for every 8 streamed positions.
  void each_pair(kernel::Value first, const std::function<void(kernel::Value first, kernel::Value i)>& body);

  const AttentionPlan& plan_;
  KernelContext& context_;
  kernel::Builder& b_;
  ElementwiseEmitter& emitter_;
  const WgmmaOutputParts& parts_;
  int at_once_, own_dim_, streamed_dim_;
  bool always_inside_;  ///< no tile has positions that do not exist or that a comparison excludes
  bool sums_own_;       ///< matmuls sum over the thread's own positions too: weights past their end are zero
  Dim own_count_, streamed_count_;
  std::vector<int> of_streamed_, made_of_streamed_, of_own_;  ///< saved; computed from them at the scores; saved
  kernel::Value outer_, first_own_, thread_;
  std::unique_ptr<Scope> outer_scope_;
  std::vector<std::unique_ptr<Scope>> own_scopes_;
  std::vector<kernel::Value> own_, own_inside_;  ///< positions; whether they exist, if matmuls sum over them
  std::vector<kernel::Var> scores_;
  std::vector<kernel::Buffer> saved_, weights_;
};

}  // namespace lathe::gpu
