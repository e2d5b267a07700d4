#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// first, first + 1, .., last - 1.
std::vector<int> dims_between(int first, int last);

/// The operand of an op that works along one dim of it, as its schedules see it: element [pre.., t, post..]. The
/// program runs over the operand's own dims.
struct AlongDim {
  AlongDim(const LoweringContext& lowering, ir::ValueId id);

  const ir::Node& node;
  int dim;
  std::vector<int> pre, post;  ///< dims before and behind it
  OperandProgram operand;
  Dim rows, size, columns;  ///< points of pre; along dim; of post
};

/// For operands of an argsort or a top_k: whether a stands before b. NaN counts as larger than every number.
kernel::Value ranks_before(kernel::Builder& b, kernel::Value x, kernel::Value y, bool descending);
/// Whether the order of an argsort or a top_k begins with the largest.
bool ranks_descending(const ir::Node& node);

}  // namespace lathe
