#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/lowering/elementwise/elementwise_emitter.h"
#include "passes/lowering/operands/load_operand.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

/// An operand of an attention's matmuls that is defined outside the region: queries, keys, values or gradients. Its
/// own domain is [outer dims of the attention, position (the row or the columns), depth]. The depth covers the
/// contracted dims of a score matmul, or the free dims of `other` in an output matmul.
struct AttentionOperand {
  ir::ValueId value;
  bool by_column = false;  ///< the position is a column index
  OperandProgram code;
  std::vector<int> outer, position, depth;  ///< dims of the operand's domain
  Dim size = 1;                             ///< number of elements along the depth
  bool plain = false;                       ///< a single load, contiguous along the depth

  DType dtype() const { return code.program[code.result].dtype; }  ///< bf16 and f16 are loaded as f32

  /// In the `dims` of attention_operand: `depth_dim - n` is the n-th dim of the depth. Other values are domain dims
  /// of the attention, or -1 for dims of size 1.
  static constexpr int depth_dim = -2;
};

/// Returns whether both operands have the same elements at the same positions.
bool same_elements(const AttentionOperand& a, const AttentionOperand& b);

/// Describes an operand of a matmul. `dims` has an entry per dim of the operand (see AttentionOperand::depth_dim).
/// `outer_dims` are the attention's outer dims, in the row-major order of the outer index.
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
  /// Emits values that depend on no index; call it outside of all loops.
  void hoist() { emitter_.hoist(top_); }
  /// Loads `lanes` consecutive elements along the depth, or along the position if `axis` is the row, starting at
  /// (position, depth).
  kernel::Value load(kernel::Value outer, kernel::Value position, kernel::Value depth, LaneAxis axis, int lanes,
                     kernel::Value mask);
  /// Prefetches all elements at a position, if the operand is contiguous along the depth.
  void prefetch(kernel::Value outer, kernel::Value position);
  /// Prefetches the cache lines that start within the elements depth .. depth + count - 1.
  void prefetch(kernel::Value outer, kernel::Value position, int depth, int count);
  /// Buffer and index of one element. Requires a single-load operand.
  struct Element {
    kernel::Buffer buffer;
    kernel::Value index;
  };
  Element element(kernel::Value outer, kernel::Value position, kernel::Value depth);
  /// Returns load() as a callback for packing.
  LoadOperand callback();
  /// Returns load() with depth as rows and positions as k, for matmuls that sum over positions.
  LoadOperand transposed_callback();
  /// The axis along which elements are contiguous.
  LaneAxis axis() const;
  LaneAxis transposed_axis() const;  ///< axis() as seen by transposed_callback()

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
