#include "models/import/onnx/ops/op_functions.h"

namespace lathe::onnx {

std::optional<Ints> given_axes(const OpCall& call, std::size_t i, int rank) {
  if (call.has(i)) return axes_from_front(call, call.integers(i, "axes"), rank);
  if (call.has("axes")) return axes_from_front(call, call.integers("axes"), rank);
  return std::nullopt;
}

Tensor along_axis(const Tensor& vector, int axis, int rank) {
  Shape shape(std::vector<Dim>(static_cast<std::size_t>(rank), Dim(1)));
  shape.set(axis, vector.size(0));
  return vector.reshape(shape);
}

Dim product(const Shape& shape, int first, int last) {
  Dim all = 1;
  for (int i = first; i < last; ++i) all = all * shape[i];
  return all;
}

Tensor from_front(const Tensor& indices, const Dim& size) {
  const Tensor count = indices.graph().dim_value(size, indices.dtype());
  return where(indices < 0, indices + count, indices);
}

Tensor padded(const Tensor& x, int dim, const Dim& low, const Dim& high, const Number& value) {
  if (value == Number(0) && x.dtype() != boolean) return pad(x, dim, low, high);
  std::vector<Tensor> parts;
  const auto add = [&](const Dim& count) {
    if (count.is(0)) return;
    Shape shape = x.shape();
    shape.set(dim, count);
    parts.push_back(x.graph().full(shape, value, x.dtype()));
  };
  add(low);
  parts.push_back(x);
  add(high);
  return parts.size() == 1 ? x : concat(parts, dim);
}

}  // namespace lathe::onnx
