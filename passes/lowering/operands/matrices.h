#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// An operand of an op over the matrices in its last two dims: elements [matrix, row, column], where `matrix` counts
/// the points of all dims before them.
struct Matrices {
  Matrices(const LoweringContext& lowering, ir::ValueId operand);

  /// Returns `lanes` elements along the columns, from [matrix, row, column] on.
  kernel::Value along_columns(ElementwiseEmitter& elements, kernel::Value matrix, kernel::Value row,
                              kernel::Value column, int lanes = 1, kernel::Value mask = {}) const;
  /// Returns `lanes` elements along the rows.
  kernel::Value along_rows(ElementwiseEmitter& elements, kernel::Value matrix, kernel::Value row,
                           kernel::Value column, int lanes, kernel::Value mask = {}) const;

  OperandProgram operand;
  std::vector<int> batch;
  int row;
  DType compute;  ///< of the elements that are returned
  Dim count, rows, columns;

 private:
  kernel::Value load(ElementwiseEmitter& elements, std::vector<IndexGroup> groups, int lanes,
                     kernel::Value mask) const;
};

/// Returns the square root of the pivot of a cholesky; NaN unless it is positive.
kernel::Value pivot_root(kernel::Builder& b, kernel::Value pivot);

/// The result of an op that reads back its own elements. A 16-bit result also keeps its elements in an f32 workspace.
class FoundElements {
 public:
  FoundElements(const LoweringContext& lowering, ir::ValueId id);

  /// Declares the buffers of the kernel.
  void declare(KernelContext& context) const;
  DType compute() const { return compute_; }
  kernel::Value load(KernelContext& context, kernel::Value at, int lanes = 1, kernel::Value mask = {}) const;
  /// Stores elements that are not final.
  void keep(KernelContext& context, kernel::Value at, kernel::Value value, kernel::Value mask = {}) const;
  void store(KernelContext& context, kernel::Value at, kernel::Value value, kernel::Value mask = {}) const;

 private:
  DType dtype_, compute_;
  int out_, kept_;
};

/// The order in which a solve_triangular finds unknowns, and the elements that it reads.
struct TriangularSolve {
  explicit TriangularSolve(const ir::Node& node);

  /// Returns the unknown that is found after `turn` others, of n.
  kernel::Value unknown(kernel::Value turn, kernel::Value n) const { return upward ? n - 1 - turn : turn; }
  /// Returns the factor of unknown j in equation i.
  kernel::Value factor(const Matrices& a, ElementwiseEmitter& elements, kernel::Value matrix, kernel::Value i,
                       kernel::Value j) const {
    return transpose ? a.along_columns(elements, matrix, j, i) : a.along_columns(elements, matrix, i, j);
  }

  bool transpose, unit, upward;
};

}  // namespace lathe
