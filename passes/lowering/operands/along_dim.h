#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// Returns first, first + 1, ..., last - 1.
std::vector<int> dims_between(int first, int last);

/// The operand of an op that works along one of its dims, in the form that schedules use: element [pre.., t, post..].
/// The program's domain is the operand's dims.
struct AlongDim {
  AlongDim(const LoweringContext& lowering, ir::ValueId id);

  /// Returns the index of element [row, t, column]. `column` is not used if no dims follow.
  std::vector<IndexGroup> element(kernel::Value row, kernel::Value t, kernel::Value column) const;

  const ir::Node& node;
  int dim;
  std::vector<int> pre, post;  ///< dims before and after `dim`
  OperandProgram operand;
  Dim rows, size, columns;  ///< number of points of pre; along `dim`; of post
};

/// Returns whether x ranks before y in an argsort or top_k. NaN ranks as larger than every number.
kernel::Value ranks_before(kernel::Builder& b, kernel::Value x, kernel::Value y, bool descending);
/// Returns whether the argsort or top_k orders from largest to smallest.
bool ranks_descending(const ir::Node& node);

}  // namespace lathe
