#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/lowering/operands/load_operand.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

/// One operand of a contraction. Its domain is its batch labels, then its rows, then the contracted labels.
struct ProductOperand {
  std::string free;  ///< labels of its rows
  OperandProgram operand;
  std::vector<int> batch, rows, k;  ///< domain dims
  LaneAxis axis = LaneAxis::k;      ///< the axis along which more of its loads are contiguous
  DType compute = f32;
  bool plain = false;     ///< a single load of an element in the compute type
  std::int64_t run = 0;   ///< plain: adjacent elements along `axis`, if known; otherwise a large number; none: 0
  bool shared = false;    ///< all batches have the same elements
  bool has_rows = false;  ///< a single load of bf16, contiguous along k, with a fixed row stride
  /// Set if the element is a byte, converted, times a factor that is shared by `run` adjacent elements along k.
  /// `numbers` and `factor` are the instructions of both. k is a multiple of `run`. run == 0: the element has another
  /// form.
  struct Scaled {
    std::int64_t run = 0;
    int numbers = 0, factor = 0;
    bool loaded = false;  ///< `numbers` is a load
  };
  Scaled scaled{};

  /// Loads `lanes` elements along an axis, starting at (row, k), in the compute type.
  kernel::Value load(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                     kernel::Value row, kernel::Value at_k, LaneAxis along, int lanes, kernel::Value mask) const {
    return load(operand.result, emitter, top, at_batch, row, at_k, along, lanes, mask);
  }
  /// Same for another instruction of the program.
  kernel::Value load(int instruction, ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                     kernel::Value at_batch, kernel::Value row, kernel::Value at_k, LaneAxis along, int lanes,
                     kernel::Value mask) const;
  /// Returns the memory of the rows that start at `row`, from column `at_k`. Requires has_rows.
  kernel::Builder::Rows rows_in_memory(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                                       kernel::Value at_batch, kernel::Value row, kernel::Value at_k) const;
  /// Prefetches `lanes` rows at one k if they are contiguous. Requires a plain operand.
  void prefetch(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                kernel::Value row, kernel::Value at_k, int lanes) const;
  /// Prefetches `lanes` elements along k of one row if they are contiguous. Requires a plain operand, or a scaled one
  /// whose numbers are loaded.
  void prefetch_along_k(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                        kernel::Value row, kernel::Value at_k, int lanes) const;
  bool prefetches_along_k() const { return plain || scaled.loaded; }
};

/// A contraction in the form result[batch, m, n] = sum over k of left[batch, m, k] * right[batch, n, k]. The right
/// operand is the one that owns the result's last dim, because vectors of the result run along that dim.
class ProductOperands {
 public:
  ProductOperands(const LoweringContext& lowering, const ir::Node& contraction);

  ProductOperand left, right;
  Dim batch = 1, m = 1, n = 1, k = 1;
  std::vector<int> batch_dims, m_dims, n_dims;  ///< of the result
  DType dtype, compute;                         ///< of the result; of the accumulators

 private:
  Dim size_of(std::string_view labels) const { return roles_.size_of(labels, lowering_.graph, node_); }
  ProductOperand operand(int which, std::string free) const;
  std::vector<int> out_dims(const std::string& labels) const;

  const LoweringContext& lowering_;
  const ir::Node& node_;
  ir::ContractionRoles roles_;
};

}  // namespace lathe
