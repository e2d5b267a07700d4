#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/lowering/operands/load_operand.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

/// One operand of a contraction over its own little domain: batch labels, then its rows, then the contracted labels.
struct ProductOperand {
  std::string free;  ///< labels of its rows
  OperandProgram operand;
  std::vector<int> batch, rows, k;  ///< domain dims
  LaneAxis axis = LaneAxis::k;      ///< along which more of its loads are contiguous
  DType compute = f32;
  bool plain = false;     ///< one load of an element of the computing type
  bool has_rows = false;  ///< one load of bf16, k side by side and rows at one distance
  /// Where the element is a byte, converted, times a factor that `run` neighbours along k share: the instructions of
  /// both. k is a multiple of run; 0: the element is something else.
  struct Scaled {
    std::int64_t run = 0;
    int numbers = 0, factor = 0;
    bool loaded = false;  ///< the numbers are a load
  };
  Scaled scaled{};

  /// `lanes` elements along an axis, starting at (row, k), in the computing type.
  kernel::Value load(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                     kernel::Value row, kernel::Value at_k, LaneAxis along, int lanes, kernel::Value mask) const {
    return load(operand.result, emitter, top, at_batch, row, at_k, along, lanes, mask);
  }
  /// The same of another instruction of the program.
  kernel::Value load(int instruction, ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                     kernel::Value at_batch, kernel::Value row, kernel::Value at_k, LaneAxis along, int lanes,
                     kernel::Value mask) const;
  /// Where the rows from `row` on lie from `at_k` on; where it has_rows.
  kernel::Builder::Rows rows_in_memory(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                                       kernel::Value at_batch, kernel::Value row, kernel::Value at_k) const;
  /// Prefetches `lanes` rows at one k, where they lie side by side; of a plain operand.
  void prefetch(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                kernel::Value row, kernel::Value at_k, int lanes) const;
  /// The same of `lanes` elements along k of one row, where they lie side by side; of a plain operand, or of the
  /// numbers that are loads of one that is scaled.
  void prefetch_along_k(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                        kernel::Value row, kernel::Value at_k, int lanes) const;
  bool prefetches_along_k() const { return plain || scaled.loaded; }
};

/// A contraction as result[batch, m, n] = sum over k of left[batch, m, k] * right[batch, n, k], before any code is
/// written. The right operand is the one that owns the result's last dim, for vectors of the result run along it.
class ProductOperands {
 public:
  ProductOperands(const LoweringContext& lowering, const ir::Node& contraction);

  ProductOperand left, right;
  Dim batch = 1, m = 1, n = 1, k = 1;
  std::vector<int> batch_dims, m_dims, n_dims;  ///< of the result
  DType dtype, compute;                         ///< of the result; that sums are computed in

 private:
  Dim size_of(std::string_view labels) const { return roles_.size_of(labels, lowering_.graph, node_); }
  ProductOperand operand(int which, std::string free) const;
  std::vector<int> out_dims(const std::string& labels) const;

  const LoweringContext& lowering_;
  const ir::Node& node_;
  ir::ContractionRoles roles_;
};

}  // namespace lathe
