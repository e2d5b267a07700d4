#pragma once

#include "passes/lowering/operands/product_operands.h"

namespace lathe {

/// One segment of a grouped_matmul or segment_outer, as a contraction of two operands. The segment's rows, first() up
/// to last() of all rows, are the rows of the operands or their contracted dim.
class Segment {
 public:
  Segment(const LoweringContext& lowering, ir::ValueId id, int number);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Whether the segment's rows are rows of the result; otherwise they are summed over.
  bool keeps_rows() const { return keeps_rows_; }
  int number() const { return number_; }
  /// Number of segments defined by the offsets.
  const Dim& count() const { return count_; }
  const ProductOperands& operands() const { return operands_; }
  const OperandProgram& offsets() const { return offsets_; }
  /// Maximum number of rows of all segments together.
  const Dim& rows() const { return keeps_rows_ ? operands_.m : operands_.k; }

 private:
  bool keeps_rows_;
  int number_;
  Dim count_;
  ir::Node product_;
  ProductOperands operands_;
  OperandProgram offsets_;
};

/// Returns the segments that the node multiplies: all of a grouped_matmul, one of a segment_outer.
std::vector<int> segment_numbers(const ir::Node& node);
/// Returns the program of a node's offsets, over their single dim.
OperandProgram segment_offsets(const LoweringContext& lowering, const ir::Node& node);
/// Emits offset number `at`, clamped to [0, rows]. The emitter must be that of segment_offsets.
kernel::Value segment_offset(ElementwiseEmitter& emitter, int result, kernel::Value at, kernel::Value rows);

/// Target-independent start of the kernel of one segment's matmul: declares its buffers and prepares operand loads.
struct SegmentProduct {
  SegmentProduct(const LoweringContext& lowering, ir::ValueId id, const Segment& of);
  SegmentProduct(const SegmentProduct&) = delete;
  SegmentProduct& operator=(const SegmentProduct&) = delete;

  /// The row range of the segment. At run time, offsets that do not ascend within [0, number of rows] are an error.
  struct Rows {
    kernel::Value first, last;
  };
  Rows find_rows();
  void store(kernel::Value at, kernel::Value sums, kernel::Value mask = {});
  /// Returns the kernel. Its FLOPs are the total of all segments divided by their number.
  KernelContext::Built finish();

  const Segment& segment;
  const ir::Node& node;
  int out;  ///< buffer of the result
  KernelContext context{"grouped_product", KernelRole::product};
  std::int64_t code;  ///< of the check of the offsets
  ElementwiseEmitter offsets, left, right;
  const ElementwiseEmitter::Scope left_top, right_top;
  kernel::Value number;  ///< number of the segment, a run-time argument so that segments share a kernel
  kernel::Value rows;    ///< total of all segments
};

}  // namespace lathe
