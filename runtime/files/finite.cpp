#include "runtime/files/finite.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "ir/support/tensors/narrow_float.h"
#include "runtime/files/file_io.h"

namespace lathe {

namespace {

/// Returns the index of the first word whose exponent is all ones (infinite or NaN), or `count`.
template <class Word>
std::int64_t first_not_finite(const std::byte* data, std::int64_t count, Word exponent) {
  constexpr std::int64_t block = 1024;  // checked as a whole, without a branch per word
  const auto word = [&](std::int64_t i) {
    Word bits = 0;
    std::memcpy(&bits, data + static_cast<std::size_t>(i) * sizeof bits, sizeof bits);
    return bits;
  };
  for (std::int64_t start = 0; start < count; start += block) {
    const std::int64_t end = std::min(start + block, count);
    bool found = false;
    for (std::int64_t i = start; i < end; ++i) found |= (word(i) & exponent) == exponent;
    if (!found) continue;
    for (std::int64_t i = start; i < end; ++i)
      if ((word(i) & exponent) == exponent) return i;
  }
  return count;
}

std::int64_t first_not_finite(DType part, const std::byte* data, std::int64_t count) {
  switch (part) {
    case f64: return first_not_finite<std::uint64_t>(data, count, 0x7ff0'0000'0000'0000);
    case f32: return first_not_finite<std::uint32_t>(data, count, 0x7f80'0000);
    case bf16: return first_not_finite<std::uint16_t>(data, count, 0x7f80);
    case f16: return first_not_finite<std::uint16_t>(data, count, 0x7c00);
    case i64:
    case i32:
    case i8:
    case u8:
    case boolean:
    case c64:
    case c128: break;
  }
  return count;
}

double value_at(DType part, const std::byte* data, std::int64_t i) {
  HostTensor one(part, {});
  std::memcpy(one.data(), data + static_cast<std::size_t>(i) * size_in_bytes(part), size_in_bytes(part));
  return one.get(0);
}

std::vector<std::int64_t> index_of(std::int64_t element, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) index[d] = element % shape[d];
  return index;
}

}  // namespace

std::string NotFinite::to_string() const {
  return fmt::format("{} is {}{}", quote(tensor), value,
                     index.empty() ? "" : fmt::format(" at [{}]", fmt::join(index, ", ")));
}

std::optional<NotFinite> find_not_finite(std::span<const TensorView> tensors) {
  for (const TensorView& tensor : tensors) {
    const std::int64_t parts = is_complex(tensor.dtype) ? 2 : 1, count = count_elements(tensor.shape) * parts;
    const DType part = is_complex(tensor.dtype) ? real_part(tensor.dtype) : tensor.dtype;
    const std::int64_t at = first_not_finite(part, tensor.data, count);
    if (at < count)
      return NotFinite{tensor.name, index_of(at / parts, tensor.shape), value_at(part, tensor.data, at)};
  }
  return std::nullopt;
}

}  // namespace lathe
