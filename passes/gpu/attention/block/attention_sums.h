#pragma once

#include "passes/gpu/attention/block/attention_block_output.h"
#include "passes/gpu/attention/block/attention_steps.h"
#include "passes/gpu/gpu_context.h"
#include "passes/lowering/attention/attention_parts.h"

namespace lathe::gpu {

/// An output matmul of an attention, inside one block: result[position] = sum over steps of weight[step][position] *
/// other[step]. Positions are the block's rows and steps the columns, or vice versa. A thread has `own` adjacent
/// positions and `vectors` vectors of the depth.
class AttentionSums {
 public:
  /// `most_vectors`: the number of vectors that fit into the thread's registers.
  AttentionSums(KernelContext& context, const GpuContext& lowering, const AttentionParts::OutputProduct& part,
                const AttentionTile& tile, int most_vectors, AttentionSteps& steps);

  const AttentionParts::OutputProduct& part() const { return part_; }
  int width() const { return vectors_ * AttentionTile::side * lanes_; }  ///< of the depth, per block
  std::int64_t shared_elements() const { return other_.shared_elements(); }
  std::int64_t weight_elements() const { return std::int64_t{tile_.span()} * tile_.stride(tile_.span()); }
  void add_programs(std::vector<const ElementwiseProgram*>& programs) const;
  void hoist();
  /// `staged`: memory for the other operand, in slots that start `slot` elements apart; `weights`: [step][position].
  void pass_through(kernel::Buffer staged, std::int64_t slot, kernel::Buffer weights);
  /// Declares the thread's registers; `first_depth`: the first depth of the block.
  void begin(kernel::Value first_depth);
  void clear_sums() { clear(b_, sums_); }

  const AttentionSteps::Product& steps_of() const { return product_; }
  /// Stores the weights of the thread's r-th row and its columns, for add().
  void put_weights(int r, kernel::Value weights, const AttentionThread& thread);
  /// Adds the steps of the current tile. All threads of the block call it.
  void add(const AttentionThread& thread);
  /// Multiplies or divides the sums by one value per row. `factors`: those of the thread's own rows, or with tensor
  /// cores those of the rows of WarpPart's first and second pair.
  void scale(ScalarOp op, const std::vector<kernel::Value>& factors);
  /// Passes the sums of the block's positions, which start at `first`, to the epilogue.
  void finish(kernel::Value outer, kernel::Value first, const AttentionThread& thread);

 private:
  void finish_pairs(kernel::Value outer, kernel::Value first, const AttentionThread& thread);

  kernel::Builder& b_;
  const AttentionParts::OutputProduct& part_;
  AttentionTile tile_;
  int lanes_, vectors_;
  OperandLoader loader_;
  StagedOperand other_;
  AttentionSteps& steps_;
  AttentionSteps::Product product_;
  AttentionOutput output_;
  kernel::Buffer weights_;
  kernel::Value first_depth_;
  std::vector<kernel::Var> sums_;
};

}  // namespace lathe::gpu
