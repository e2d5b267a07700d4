#include "ir/support/tensors/narrow_float.h"

#include <bit>
#include <cmath>

namespace lathe {

namespace {

constexpr std::uint32_t f32_magnitude = 0x7fffffff, f32_infinity = 0x7f800000;

/// Removes the lowest `shift` bits, rounding to nearest, ties to even. A carry into the exponent is intended.
std::uint32_t shift_right_even(std::uint32_t bits, int shift) {
  const std::uint32_t half = 1u << (shift - 1);
  return (bits + (half - 1) + ((bits >> shift) & 1)) >> shift;
}

/// Converts the f32 infinity or NaN `magnitude` to a format with `fraction_bits` bits of fraction.
std::uint32_t narrow_nan(std::uint32_t magnitude, int fraction_bits, std::uint32_t infinity) {
  const std::uint32_t fraction = (magnitude & 0x7fffff) >> (23 - fraction_bits);
  const bool payload_is_lost = fraction == 0 && magnitude != f32_infinity;
  return infinity | fraction | (payload_is_lost ? 1u << (fraction_bits - 1) : 0u);
}

}  // namespace

Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & f32_magnitude, sign = (bits >> 16) & 0x8000;
  if (magnitude >= f32_infinity) return {static_cast<std::uint16_t>(sign | narrow_nan(magnitude, 7, 0x7f80))};
  return {static_cast<std::uint16_t>(sign | shift_right_even(magnitude, 16))};
}

Bf16 to_bf16(double value) { return to_bf16(round_to_odd(value)); }
F16 to_f16(double value) { return to_f16(round_to_odd(value)); }

float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || std::isnan(value)) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  // The neighbour nearer to zero, with its last bit set.
  return std::bit_cast<float>((std::fabs(back) > std::fabs(value) ? bits - 1 : bits) | 1);
}

double round_to_odd(std::int64_t value) {
  if (value > -(std::int64_t{1} << 53) && value < std::int64_t{1} << 53) return static_cast<double>(value);
  // The last kept bit is set if any lower bit was.
  const std::int64_t kept = value & ~std::int64_t{0x7ff};
  return static_cast<double>(kept == value ? value : kept | 0x800);
}

float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

F16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & f32_magnitude, sign = (bits >> 16) & 0x8000;
  const auto with_sign = [&](std::uint32_t half) { return F16{static_cast<std::uint16_t>(sign | half)}; };
  constexpr std::uint32_t overflow = 0x477ff000;         // 65520, halfway between the largest f16 and 2^16
  constexpr std::uint32_t smallest_normal = 0x38800000;  // 2^-14
  constexpr std::uint32_t smallest = 0x33000000;         // 2^-25, halfway between 0 and the smallest subnormal
  if (magnitude >= f32_infinity) return with_sign(narrow_nan(magnitude, 10, 0x7c00));
  if (magnitude >= overflow) return with_sign(0x7c00);
  if (magnitude >= smallest_normal) return with_sign(shift_right_even(magnitude - (112u << 23), 13));
  if (magnitude <= smallest) return with_sign(0);
  // Subnormal: the significand counted in units of 2^-24.
  const int exponent = static_cast<int>(magnitude >> 23);
  return with_sign(shift_right_even((magnitude & 0x7fffff) | 0x800000, 126 - exponent));
}

float to_float(F16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | f32_infinity | ((magnitude & 0x3ff) << 13));
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

}  // namespace lathe
