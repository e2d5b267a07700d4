#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/lowering/elementwise/elementwise_emitter.h"
#include "passes/lowering/operands/load_operand.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

/// An operand of an attention's products that comes from outside: queries, keys, values, or gradients. Its own little
/// domain is [outer dims of the attention, its position (the row, or the columns), the depth: what the product sums
/// over or spreads out].
struct AttentionOperand {
  ir::ValueId value;
  bool by_column = false;  ///< its position is a column
  OperandProgram code;
  std::vector<int> outer, position, depth;  ///< dims of its domain
  Dim size = 1;                             ///< of the depth
  bool plain = false;                       ///< one load of an element, contiguous along the depth

  DType dtype() const { return code.program[code.result].dtype; }  ///< bf16 and f16 are loaded as f32

  /// How the product names it: which domain dim of the attention each of its dims is, -1 where its size is 1,
  /// `depth_dim - n` for the n-th dim of the depth.
  static constexpr int depth_dim = -2;
};

/// Whether both are the same element at the same position.
bool same_elements(const AttentionOperand& a, const AttentionOperand& b);

/// Describes an operand. `dims`: by dim of the operand, as above; `outer_dims`: the attention's outer dims in the
/// order in which one index counts them.
AttentionOperand attention_operand(const LoweringContext& lowering, const Region& region, ir::ValueId value,
                                   const std::vector<int>& dims, const std::vector<int>& outer_dims);

/// Loads elements of an operand inside one kernel. The operand must outlive it.
class OperandLoader {
 public:
  OperandLoader(KernelContext& context, const LoweringContext& lowering, const AttentionOperand& operand,
                DType compute);
  OperandLoader(const OperandLoader&) = delete;
  OperandLoader& operator=(const OperandLoader&) = delete;

  const AttentionOperand& operand() const { return operand_; }
  DType compute() const { return compute_; }
  KernelContext& context() { return emitter_.context(); }
  /// Emits what depends on no index; call it outside of all loops.
  void hoist() { emitter_.hoist(top_); }
  /// `lanes` elements along the depth (or along the position), starting there.
  kernel::Value load(kernel::Value outer, kernel::Value position, kernel::Value depth, LaneAxis axis, int lanes,
                     kernel::Value mask);
  /// Prefetches what lies at a position, where its elements are neighbours along the depth.
  void prefetch(kernel::Value outer, kernel::Value position);
  /// The same of the cache lines that begin at `count` of its elements, `depth` and those that follow.
  void prefetch(kernel::Value outer, kernel::Value position, int depth, int count);
  /// Where an element lies of an operand that is one load.
  struct Element {
    kernel::Buffer buffer;
    kernel::Value index;
  };
  Element element(kernel::Value outer, kernel::Value position, kernel::Value depth);
  /// The same as load(), as a callback for packing.
  LoadOperand callback();
  /// The same with the depth as the rows and the positions as k, for products that sum over positions.
  LoadOperand transposed_callback();
  /// Along which axis its elements are neighbours.
  LaneAxis axis() const;
  LaneAxis transposed_axis() const;  ///< as transposed_callback() has it

 private:
  void each_cache_line(const std::function<void(const ElementwiseInstruction& load, int line)>& body);
  void prefetch(const ElementwiseInstruction& load, kernel::Value outer, kernel::Value position, kernel::Value depth,
                int line);

  const AttentionOperand& operand_;
  DType compute_;
  BufferOf buffer_of_;
  ElementwiseEmitter emitter_;
  ElementwiseEmitter::Scope top_;
};

}  // namespace lathe
