#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/block_sums.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"
#include "passes/lowering/elementwise/row_space.h"

namespace lathe::cpu {

/// Emits the reductions that one loop over a row accumulates element by element. Each has some accumulators (chains),
/// which the loop adds to in turn; a long sum also has a total, to which its accumulators are moved after each block.
class RowFolds {
 public:
  /// Emits the accumulators of `reductions`, at most `most_chains` for each. The arguments must outlive this object.
  RowFolds(kernel::Builder& b, ElementwiseEmitter& emitter, const ElementwiseProgram& program, const RowSpace& space,
           std::vector<int> reductions, int most_chains);
  /// Emits the totals of long sums.
  void add_totals();

  int chains() const { return chains_; }
  /// Whether there are totals, so that the loop must call end_block().
  bool in_blocks() const;

  /// Adds the element of the scope to accumulator `chain` of each reduction.
  void accumulate(int chain, ElementwiseEmitter::Scope& element);
  void end_block();
  /// Combines the accumulators and binds the results in the scope of the row.
  void finish(ElementwiseEmitter::Scope& row);

 private:
  struct Fold {
    int reduction;
    std::vector<kernel::Var> chains;
    std::optional<BlockTotal> total = {};  ///< nothing if one block is enough
  };
  std::optional<BlockTotal> total_of(const ElementwiseInstruction& reduce) const;
  kernel::Value combined(const Fold& fold);
  void accumulate(const Fold& fold, int chain, ElementwiseEmitter::Scope& element);
  void finish(Fold& fold, ElementwiseEmitter::Scope& row);

  kernel::Builder& b_;
  ElementwiseEmitter& emitter_;
  const ElementwiseProgram& program_;
  const RowSpace& space_;
  int chains_ = 1;
  std::vector<Fold> folds_;
};

}  // namespace lathe::cpu
