#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/op/op.h"

/// When a view exists, and what to say when it does not.
namespace lathe::ir::rules {

/// The strides that show `type` in `shape` (as many elements) without a copy; nothing where none are known to exist.
/// The rule of PyTorch's computeStride, on symbolic sizes: only dims that lie contiguously may be joined.
std::optional<std::vector<Dim>> view_strides(const TensorType& type, const Shape& shape);

/// The target of a view or reshape of operand 0 with its one -1 worked out [view_infer], and as many elements as the
/// operand [view_numel]; [dim_negative]. Elements that only bound sizes can count become a run-time check.
Shape resolve_view_shape(const InferContext& ctx, const Shape& target);

/// "transpose of dims 1 and 2 at mha.cpp:21": the op that made a value strided. Empty for a contiguous value.
std::string strided_by(const Graph& graph, ValueId value);

/// start, stop and the number of elements of a slice, after negative numbers were counted from the end.
struct SliceBounds {
  Dim start, stop;
};
SliceBounds slice_bounds(const Dim& size, const Dim& start, const Dim& stop);

}  // namespace lathe::ir::rules
