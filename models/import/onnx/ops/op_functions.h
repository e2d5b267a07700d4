#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/graph.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"
#include "models/import/onnx/check_ops.h"
#include "models/import/op_table.h"

/// Functions that several groups of ops share.
namespace lathe::onnx {

using importing::DimTensor;
using importing::Moves;
using importing::OpCall;
using importing::OpRecord;
using importing::Results;
using importing::Value;

/// The last version of an op whose meaning has not changed since.
inline constexpr std::int64_t latest = newest_opset;

using Ints = std::vector<std::int64_t>;

/// Applies an op of integers to i8 and u8, which have no arithmetic in Lathe: computes in i32 and wraps the result.
template <class Op>
Tensor widened(const Op& op, const Tensor& a) {
  return is_byte(a.dtype()) ? op(a.to(i32)).to(a.dtype()) : op(a);
}
template <class Op>
Tensor widened(const Op& op, const Tensor& a, const Tensor& b) {
  return is_byte(a.dtype()) && a.dtype() == b.dtype() ? op(a.to(i32), b.to(i32)).to(a.dtype()) : op(a, b);
}

/// Returns the tensor in a wider float dtype for functions of several steps: f64 for f32, f32 for bf16 and f16.
template <class Op>
Tensor in_wider_float(const Op& op, const Tensor& a) {
  return op(a.to(a.dtype() == f32 || a.dtype() == f64 ? f64 : f32)).to(a.dtype());
}

/// Returns a list of axes, each counted from the front.
inline Ints axes_from_front(const OpCall& call, Ints axes, int rank) {
  for (std::int64_t& axis : axes) axis = call.axis(axis, rank);
  return axes;
}

/// Returns the axes of a reduction or a view: of operand `i` if it is given, otherwise of the attribute `axes`;
/// nothing if neither is given.
std::optional<Ints> given_axes(const OpCall& call, std::size_t i, int rank);

/// Returns [1, .., size, .., 1] with the sizes of `x` at one axis, to broadcast a vector along it.
Tensor along_axis(const Tensor& vector, int axis, int rank);

/// Returns the product of sizes [first, last).
Dim product(const Shape& shape, int first, int last);

/// Returns integers whose negative elements count from the end of a dim of `size` elements.
Tensor from_front(const Tensor& indices, const Dim& size);

/// Adds elements of one value before and after a dim.
Tensor padded(const Tensor& x, int dim, const Dim& low, const Dim& high, const Number& value);

/// Returns axes as the DSL takes them.
inline Axes axes_of(Ints dims) {
  Axes axes;
  axes.dims = std::move(dims);
  return axes;
}

}  // namespace lathe::onnx
