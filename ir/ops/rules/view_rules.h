#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/op/op.h"

/// Decides whether a view exists, and explains why not.
namespace lathe::ir::rules {

/// Returns the strides that view `type` in `shape` (of equal size) without a copy, or nothing if none are known to
/// exist. Implements PyTorch's computeStride on symbolic sizes: only contiguous dims may be merged.
std::optional<std::vector<Dim>> view_strides(const TensorType& type, const Shape& shape);

/// Returns the target shape of a view or reshape of operand 0, with its -1 inferred [view_infer] [dim_negative]. The
/// number of elements must match the operand's [view_numel]; this is a run-time check if it depends on bound sizes.
Shape resolve_view_shape(const InferContext& ctx, const Shape& target);

/// Returns the op that made a value strided: "transpose of dims 1 and 2 at mha.cpp:21". Empty for a contiguous value.
std::string strided_by(const Graph& graph, ValueId value);

/// The range of a slice, after negative numbers were counted from the end.
struct SliceBounds {
  Dim start, stop;
};
SliceBounds slice_bounds(const Dim& size, const Dim& start, const Dim& stop);

}  // namespace lathe::ir::rules
