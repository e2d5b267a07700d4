#include "models/import/ops/vision/folded_windows.h"

namespace lathe::importing {

namespace {

/// Puts stride - 1 zeros between the elements of a dim.
Tensor spread(const Tensor& x, int dim, std::int64_t stride) {
  if (stride == 1) return x;
  const Dim size = x.size(dim).unnamed();
  Shape shape = x.shape();
  shape.set(dim, size * Dim(stride));
  const Tensor all = pad(x.unsqueeze(dim + 1), dim + 1, 0, stride - 1).reshape(shape);
  return all.slice(dim, 0, (size - Dim(1)) * Dim(stride) + Dim(1));
}

}  // namespace

Tensor folded(const Tensor& x, int elements, int windows, const FoldedWindows& options) {
  const std::int64_t count = *x.size(elements).value();
  const int dim = windows > elements ? windows - 1 : windows;  // without the dim of the elements
  const Dim whole = options.size + options.padding;            // and less or more padding at the end
  Tensor sum;
  for (std::int64_t k = 0; k < count; ++k) {
    if ((whole - Dim(k * options.dilation)).value().value_or(0) < 0) break;  // all of it is padding
    Tensor part = spread(x.select(elements, k), dim, options.stride);
    const Dim start(k * options.dilation), rest = whole - start - part.size(dim).unnamed();
    const bool is_cut = rest.value() ? *rest.value() < 0 : false;
    part = is_cut ? pad(part.slice(dim, 0, whole - start), dim, start, 0) : pad(part, dim, start, rest);
    sum = sum.is_empty() ? part : sum + part;
  }
  return options.padding.is(0) ? sum : sum.slice(dim, options.padding, whole);
}

}  // namespace lathe::importing
