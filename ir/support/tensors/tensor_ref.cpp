#include "ir/support/tensors/tensor_ref.h"

#include <cstring>

namespace lathe {

namespace {

/// Calls f(offset) for every element of the dims from `dim` on, in row-major order. Offsets are in elements.
template <class F>
void for_each_offset(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                     std::size_t dim, std::int64_t offset, const F& f) {
  if (dim == shape.size()) {
    f(offset);
    return;
  }
  for (std::int64_t i = 0; i < shape[dim]; ++i)
    for_each_offset(shape, strides, dim + 1, offset + i * strides[dim], f);
}

}  // namespace

bool is_row_major(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  if (strides.empty()) return true;
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

void gather(const ConstTensorRef& from, std::byte* to) {
  const std::int64_t count = count_elements(from.shape);
  if (count == 0) return;
  const auto size = static_cast<std::int64_t>(size_in_bytes(from.dtype));
  if (is_row_major(from.shape, from.strides)) {
    std::memcpy(to, from.data, static_cast<std::size_t>(count * size));
    return;
  }
  for_each_offset(from.shape, from.strides, 0, 0, [&](std::int64_t offset) {
    std::memcpy(to, from.data + offset * size, static_cast<std::size_t>(size));
    to += size;
  });
}

void scatter(const std::byte* from, const TensorRef& to) {
  const std::int64_t count = count_elements(to.shape);
  if (count == 0) return;
  const auto size = static_cast<std::int64_t>(size_in_bytes(to.dtype));
  if (is_row_major(to.shape, to.strides)) {
    std::memcpy(to.data, from, static_cast<std::size_t>(count * size));
    return;
  }
  for_each_offset(to.shape, to.strides, 0, 0, [&](std::int64_t offset) {
    std::memcpy(to.data + offset * size, from, static_cast<std::size_t>(size));
    from += size;
  });
}

}  // namespace lathe
