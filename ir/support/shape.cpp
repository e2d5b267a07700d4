#include "ir/support/shape.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe {

Dim Shape::numel() const {
  Dim product(1);
  for (const Dim& dim : dims_) product = product * dim.unnamed();
  return product;
}

std::vector<std::int64_t> Shape::evaluate(const DimBindings& bindings) const {
  std::vector<std::int64_t> sizes;
  sizes.reserve(dims_.size());
  for (const Dim& dim : dims_) sizes.push_back(dim.evaluate(bindings));
  return sizes;
}

bool Shape::looks_like(const Shape& other) const {
  return is_same(other) || std::equal(begin(), end(), other.begin(), other.end(),
                                      [](const Dim& x, const Dim& y) { return x.looks_like(y); });
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (const Dim& dim : dims_) text += (text.size() > 1 ? ", " : "") + dim.to_string();
  return text + "]";
}

namespace ir {

std::vector<Dim> row_major_strides(const Shape& shape) {
  std::vector<Dim> strides(static_cast<std::size_t>(shape.rank()), Dim(1));
  for (int i = shape.rank() - 2; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    strides[at] = strides[at + 1] * shape[i + 1].unnamed();
  }
  return strides;
}

TensorType TensorType::contiguous(DType dtype, Shape shape) {
  auto strides = row_major_strides(shape);
  return {dtype, std::move(shape), std::move(strides)};
}

bool TensorType::is_row_major() const {
  if (strides.size() != shape.dims().size()) return false;
  Dim expected(1);
  for (int i = rank() - 1; i >= 0; --i) {
    if (strides[i] != expected) return false;
    if (i > 0) expected = expected * shape[i].unnamed();
  }
  return true;
}

bool TensorType::is_contiguous() const {
  Dim expected(1);
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i].is(1)) continue;
    if (strides[i] != expected) return false;
    expected = expected * shape[i].unnamed();
  }
  return true;
}

std::string TensorType::to_string() const { return fmt::format("{}{}", name(dtype), shape.to_string()); }

}  // namespace ir
}  // namespace lathe
