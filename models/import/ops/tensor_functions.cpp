#include "models/import/ops/tensor_functions.h"

namespace lathe::importing {

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

Tensor tiled(const Tensor& x, const std::vector<Dim>& repeats) {
  Shape split, repeated, joined;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& times = repeats[static_cast<std::size_t>(i)];
    split.push_back(1);
    split.push_back(x.size(i));
    repeated.push_back(times);
    repeated.push_back(x.size(i));
    joined.push_back(times.is(1) ? x.size(i) : times * x.size(i));
  }
  return x.reshape(split).expand(repeated).reshape(joined);
}

HostTensor scalar_of(const Number& number, DType dtype) {
  HostTensor tensor(dtype, {});
  tensor.set_number(0, number);
  return tensor;
}

}  // namespace lathe::importing
