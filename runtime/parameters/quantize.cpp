#include "runtime/parameters/quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"

namespace lathe {

namespace {

constexpr float largest = 127;
// Adding it to a small float and subtracting it again rounds to the nearest integer, ties to even.
constexpr float rounder = 0x1.8p23f;

/// Reads elements i, i + stride, ... of a float tensor.
template <class T>
void read_strided(const HostTensor& from, std::int64_t i, std::int64_t stride, std::span<float> to) {
  const auto all = from.as<T>();
  for (float& value : to) {
    const T x = all[i];
    if constexpr (std::is_same_v<T, Bf16> || std::is_same_v<T, F16>)
      value = to_float(x);
    else
      value = static_cast<float>(x);
    i += stride;
  }
}

void read(const HostTensor& from, std::int64_t i, std::int64_t stride, std::span<float> to) {
  if (from.dtype() == f32) return read_strided<float>(from, i, stride, to);
  if (from.dtype() == bf16) return read_strided<Bf16>(from, i, stride, to);
  if (from.dtype() == f16) return read_strided<F16>(from, i, stride, to);
  read_strided<double>(from, i, stride, to);
}

/// Quantizes one block. Returns its scale, which is not finite if the block is not.
float quantize_block(std::span<const float> block, std::span<std::int8_t> numbers) {
  float most = 0;
  bool finite = true;
  for (const float x : block) {
    most = std::max(most, std::fabs(x));
    finite = finite && std::isfinite(x);
  }
  if (!finite) return INFINITY;
  // The block becomes zeros if the scale is below the smallest normal number, because its inverse could overflow.
  const float scale = most / largest;
  if (scale < 0x1p-126f) return 0;
  const float inverse = 1 / scale;
  for (std::size_t i = 0; i < block.size(); ++i)
    numbers[i] = static_cast<std::int8_t>((block[i] * inverse + rounder) - rounder);
  return scale;
}

void check(const HostTensor& matrix, std::int64_t block, bool transposed) {
  const bool fits =
      matrix.rank() == 2 && is_float(matrix.dtype()) && block > 0 && matrix.shape()[transposed ? 0 : 1] % block == 0;
  if (!fits)
    throw UserError(
        fmt::format("{}{} has no rows of blocks of {}", name(matrix.dtype()), shape_to_string(matrix.shape()), block),
        "quantize_block", "give a float matrix whose rows are a multiple of the block");
}

}  // namespace

QuantizedMatrix quantize(const HostTensor& matrix, std::int64_t block, bool transposed) {
  check(matrix, block, transposed);
  const FloatEnvironment environment;
  const std::int64_t rows = matrix.shape()[transposed ? 1 : 0], n = matrix.shape()[transposed ? 0 : 1];
  QuantizedMatrix result{HostTensor(i8, {rows, n}), HostTensor(f32, {rows, n / block})};
  const auto numbers = result.numbers.as<std::int8_t>();
  const auto scales = result.scales.as<float>();
  std::vector<float> row(static_cast<std::size_t>(n));
  const auto size = static_cast<std::size_t>(block);
  std::size_t at = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    read(matrix, transposed ? r : r * n, transposed ? rows : 1, row);
    for (std::size_t first = 0; first < row.size(); first += size, at += size) {
      const float scale = quantize_block(std::span(row).subspan(first, size), numbers.subspan(at, size));
      if (!std::isfinite(scale))
        throw UserError(
            fmt::format("row {} of {}{} is not finite", r, name(matrix.dtype()), shape_to_string(matrix.shape())),
            "quantize_value", "only finite numbers can be quantized");
      scales[at / size] = scale;
    }
  }
  return result;
}

}  // namespace lathe
