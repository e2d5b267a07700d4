#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"
#include "models/import/op_call.h"

/// Functions on tensors that the ops of all formats share.
namespace lathe::importing {

using Ints = std::vector<std::int64_t>;

/// The logical ops of bools, and the bitwise ops of integers.
struct And {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a & b; }
};
struct Or {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a | b; }
};
struct Xor {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a ^ b; }
};

/// Applies an op of integers to i8 and u8, which have no arithmetic in Lathe: computes in i32 and wraps the result.
template <class Op>
Tensor widened(const Op& op, const Tensor& a) {
  return is_byte(a.dtype()) ? op(a.to(i32)).to(a.dtype()) : op(a);
}
template <class Op>
Tensor widened(const Op& op, const Tensor& a, const Tensor& b) {
  return is_byte(a.dtype()) && a.dtype() == b.dtype() ? op(a.to(i32), b.to(i32)).to(a.dtype()) : op(a, b);
}

/// Returns a list of axes, each counted from the front.
inline Ints axes_from_front(const OpCall& call, Ints axes, int rank) {
  for (std::int64_t& axis : axes) axis = call.axis(axis, rank);
  return axes;
}

/// Returns [1, .., size, .., 1] with the sizes of `x` at one axis, to broadcast a vector along it.
Tensor along_axis(const Tensor& vector, int axis, int rank);

/// Returns the product of sizes [first, last).
Dim product(const Shape& shape, int first, int last);

/// Returns integers whose negative elements count from the end of a dim of `size` elements.
Tensor from_front(const Tensor& indices, const Dim& size);

/// Adds elements of one value before and after a dim.
Tensor padded(const Tensor& x, int dim, const Dim& low, const Dim& high, const Number& value);

/// Returns the elements repeated `repeats` times along each dim.
Tensor tiled(const Tensor& x, const std::vector<Dim>& repeats);

/// Returns axes as the DSL takes them.
inline Axes axes_of(Ints dims) {
  Axes axes;
  axes.dims = std::move(dims);
  return axes;
}

/// Returns one number, or a list of numbers, as a constant of rank 0 or 1.
HostTensor scalar_of(const Number& number, DType dtype);
template <class T>
HostTensor vector_of(const std::vector<T>& numbers, DType dtype) {
  HostTensor tensor(dtype, {static_cast<std::int64_t>(numbers.size())});
  for (std::size_t i = 0; i < numbers.size(); ++i) tensor.set_number(static_cast<std::int64_t>(i), numbers[i]);
  return tensor;
}

}  // namespace lathe::importing
