#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/support/tensors/narrow_float.h"

using namespace lathe;

namespace {

/// Returns the value of a bit pattern by the definition of the format.
double decode(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class T, class Real>
T narrow(Real value) {
  if constexpr (std::is_same_v<T, Bf16>)
    return to_bf16(value);
  else
    return to_f16(value);
}

template <class T>
int count_wrong_patterns(int exponent_bits) {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = to_float(T{bits});
    const double expected = decode(bits, exponent_bits);
    const bool same = std::isnan(expected) ? std::isnan(value) : (value == expected);
    if (!same || std::signbit(value) != ((bits & 0x8000) != 0) || narrow<T>(value).bits != bits) ++wrong;
  }
  return wrong;
}

/// Checks rounding between neighbours: below the midpoint down, above it up, and at the midpoint to even.
template <class T>
int count_wrong_roundings(std::uint16_t infinity, int exponent_bits) {
  int wrong = 0;
  for (std::uint16_t low = 0; low < infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double a = decode(low, exponent_bits);
    const double step = high == infinity ? a - decode(static_cast<std::uint16_t>(low - 1), exponent_bits)
                                         : decode(high, exponent_bits) - a;
    const auto middle = static_cast<float>(a + step / 2);
    const float below = std::nextafterf(middle, 0.0f), above = std::nextafterf(middle, HUGE_VALF);
    const std::uint16_t even = low % 2 == 0 ? low : high;
    for (const float sign : {1.0f, -1.0f}) {
      const auto sign_bit = static_cast<std::uint16_t>(sign < 0 ? 0x8000 : 0);
      if (narrow<T>(sign * middle).bits != (even | sign_bit)) ++wrong;
      if (narrow<T>(sign * below).bits != (low | sign_bit)) ++wrong;
      if (narrow<T>(sign * above).bits != (high | sign_bit)) ++wrong;
    }
  }
  return wrong;
}

/// The same for the f64 next to each midpoint, which f32 rounds to the midpoint.
template <class T>
int count_double_roundings(std::uint16_t infinity, int exponent_bits) {
  int wrong = 0;
  for (std::uint16_t low = 0; low < infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double a = decode(low, exponent_bits);
    const double step = high == infinity ? a - decode(static_cast<std::uint16_t>(low - 1), exponent_bits)
                                         : decode(high, exponent_bits) - a;
    const double middle = a + step / 2;
    for (const double sign : {1.0, -1.0}) {
      const auto sign_bit = static_cast<std::uint16_t>(sign < 0 ? 0x8000 : 0);
      if (narrow<T>(sign * std::nextafter(middle, 0.0)).bits != (low | sign_bit)) ++wrong;
      if (narrow<T>(sign * std::nextafter(middle, HUGE_VAL)).bits != (high | sign_bit)) ++wrong;
      if (narrow<T>(sign * middle).bits != ((low % 2 == 0 ? low : high) | sign_bit)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("every 16-bit pattern decodes to its value and round-trips") {
  CHECK(count_wrong_patterns<Bf16>(8) == 0);
  CHECK(count_wrong_patterns<F16>(5) == 0);
}

TEST_CASE("f32 rounds to the nearest 16-bit float, ties to even") {
  CHECK(count_wrong_roundings<Bf16>(0x7f80, 8) == 0);
  CHECK(count_wrong_roundings<F16>(0x7c00, 5) == 0);
}

TEST_CASE("a NaN whose payload is only in the dropped bits stays a NaN") {
  const auto nan = std::bit_cast<float>(0xff800001u);
  CHECK(to_bf16(nan).bits == 0xffc0);
  CHECK(to_f16(nan).bits == 0xfe00);
  CHECK(to_f16(std::numeric_limits<float>::max()).bits == 0x7c00);
  CHECK(to_f16(-std::numeric_limits<float>::denorm_min()).bits == 0x8000);
}

TEST_CASE("f64 rounds once to the nearest 16-bit float") {
  CHECK(count_double_roundings<Bf16>(0x7f80, 8) == 0);
  CHECK(count_double_roundings<F16>(0x7c00, 5) == 0);
  CHECK(to_bf16(1e300).bits == 0x7f80);
  CHECK(to_f16(-1e-300).bits == 0x8000);
  CHECK(std::isnan(to_float(to_bf16(std::nan("")))));
}

TEST_CASE("an integer rounded to odd is exact in f64, or keeps its side of a tie") {
  for (const std::int64_t integer : {std::int64_t{0}, std::int64_t{-5}, (std::int64_t{1} << 53) - 1, INT64_MIN})
    CHECK(round_to_odd(integer) == static_cast<double>(integer));
  const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 38);
  CHECK(static_cast<float>(round_to_odd(tie)) == 0x1p62f);
  CHECK(static_cast<float>(round_to_odd(tie + 1)) == 0x1.000002p62f);
  CHECK(static_cast<float>(round_to_odd(-tie - 1)) == -0x1.000002p62f);
  CHECK(static_cast<float>(round_to_odd(INT64_MAX)) == 0x1p63f);
}
