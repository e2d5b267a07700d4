#pragma once

#include "passes/lowering/operands/product_operands.h"

namespace lathe {

/// One segment of a grouped_matmul or a segment_outer as a contraction of two operands whose rows, or whose
/// contracted dim, are those of the segment: rows first() up to last() of all.
class Segment {
 public:
  Segment(const LoweringContext& lowering, ir::ValueId id, int number);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Whether the rows are those of the result; else they are what is summed over.
  bool keeps_rows() const { return keeps_rows_; }
  int number() const { return number_; }
  /// How many segments the offsets mark.
  const Dim& count() const { return count_; }
  const ProductOperands& operands() const { return operands_; }
  const OperandProgram& offsets() const { return offsets_; }
  /// How many rows all segments have together, at most.
  const Dim& rows() const { return keeps_rows_ ? operands_.m : operands_.k; }

 private:
  bool keeps_rows_;
  int number_;
  Dim count_;
  ir::Node product_;
  ProductOperands operands_;
  OperandProgram offsets_;
};

/// The segments that the node multiplies: all of a grouped_matmul, one of a segment_outer.
std::vector<int> segment_numbers(const ir::Node& node);
/// The program of a node's offsets, over their one dim.
OperandProgram segment_offsets(const LoweringContext& lowering, const ir::Node& node);
/// Offset number `at`, brought into 0 .. rows: the emitter is of segment_offsets.
kernel::Value segment_offset(ElementwiseEmitter& emitter, int result, kernel::Value at, kernel::Value rows);

/// The kernel of one segment's product as it begins on every machine: what it reads and writes is declared, and
/// operands can be loaded.
struct SegmentProduct {
  SegmentProduct(const LoweringContext& lowering, ir::ValueId id, const Segment& of);
  SegmentProduct(const SegmentProduct&) = delete;
  SegmentProduct& operator=(const SegmentProduct&) = delete;

  /// Where the rows of the segment lie; an error when it runs where offsets do not ascend from 0 to the rows of all.
  struct Rows {
    kernel::Value first, last;
  };
  Rows find_rows();
  void store(kernel::Value at, kernel::Value sums, kernel::Value mask = {});
  /// The kernel, and its share of the operations of all segments.
  KernelContext::Built finish();

  const Segment& segment;
  const ir::Node& node;
  int out;  ///< the buffer of the result
  KernelContext context{"grouped_product", KernelRole::product};
  std::int64_t code;  ///< of the check of offsets
  ElementwiseEmitter offsets, left, right;
  const ElementwiseEmitter::Scope left_top, right_top;
  kernel::Value number;  ///< of the segment: an argument of the run, so that segments share a kernel
  kernel::Value rows;    ///< of all segments
};

}  // namespace lathe
