#include "ir/kernel/interpret/scalar_eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/kernel/interpret/scalar_arithmetic.h"
#include "ir/kernel/kernel.h"
#include "ir/support/error.h"

namespace lathe::kernel {

Scalar constant_value(const Instruction& constant) {
  return is_float(constant.type.scalar) ? Scalar{.real = constant.real} : Scalar{.integer = constant.integer};
}

std::uint16_t f16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x1ff));
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00);
  // Subnormals count units of 2^-24; nearbyint rounds to even.
  if (magnitude < 0x1p-14f)
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(magnitude * 0x1p24f)));
  const std::uint32_t absolute = bits & 0x7fffffff;
  const std::uint32_t rounded = absolute + 0xfff + ((absolute >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

float f16_value(std::uint16_t bits) {
  const float sign = (bits & 0x8000) ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 0x3ff;
  if (exponent == 31) {
    const std::uint32_t wide = (static_cast<std::uint32_t>(bits & 0x8000) << 16) | 0x7f800000u |
                               (static_cast<std::uint32_t>(fraction) << 13) | (fraction ? 0x400000u : 0u);
    return std::bit_cast<float>(wide);
  }
  if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-24f;
  const auto wide = (static_cast<std::uint32_t>(bits & 0x8000) << 16) | static_cast<std::uint32_t>(exponent + 112)
                                                                            << 23;
  return std::bit_cast<float>(wide | static_cast<std::uint32_t>(fraction) << 13);
}

namespace {

/// A 16-bit float format: its significand bits, and the exponent of its smallest normal number.
struct Narrow {
  int bits, least_exponent;
};
constexpr Narrow narrow_bf16{8, -126}, narrow_f16{11, -14};

/// Rounds to the nearest multiple of the narrow float's last place. The result is exact in f32, or too large for it.
float to_last_place(Narrow narrow, double value) {
  const auto single = static_cast<float>(value);
  if (single == value || !std::isfinite(value)) return single;
  const int place = std::max(std::ilogb(value), narrow.least_exponent) - (narrow.bits - 1);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(value, -place)), place));
}

/// Same for an integer, ties to the even multiple.
float to_last_place(Narrow narrow, std::int64_t value) {
  const auto magnitude = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const int place = std::max(0, static_cast<int>(std::bit_width(magnitude)) - narrow.bits);
  if (place == 0) return static_cast<float>(value);
  const std::uint64_t below = (std::uint64_t{1} << (place - 1)) - 1, odd = magnitude >> place & 1;
  const auto multiple = static_cast<float>((magnitude + below + odd) >> place);
  return std::ldexp(value < 0 ? -multiple : multiple, place);
}

template <class T>
double round_number(DType dtype, T value) {
  switch (dtype) {
    case DType::f64: return static_cast<double>(value);
    case DType::f32: return static_cast<float>(value);
    case DType::bf16: return bf16_value(bf16_bits(to_last_place(narrow_bf16, value)));
    case DType::f16: return f16_value(f16_bits(to_last_place(narrow_f16, value)));
    case DType::i64:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("round_to wants a float type");
}

}  // namespace

double round_to(DType dtype, double value) { return round_number(dtype, value); }
double round_to(DType dtype, std::int64_t value) { return round_number(dtype, value); }

std::int64_t wrap_to(DType dtype, std::int64_t value) { return wrap_inline(dtype, value); }

bool is_defined(ScalarOp op, DType dtype) {
  const bool computed_float = dtype == f32 || dtype == f64;
  switch (traits(op).operands) {
    case ScalarOperands::numbers: return computed_float || is_integer(dtype);
    case ScalarOperands::numbers_or_bools: return computed_float || is_integer(dtype) || dtype == boolean;
    case ScalarOperands::integers: return is_integer(dtype);
    case ScalarOperands::floats: return computed_float;
    case ScalarOperands::bools: return dtype == boolean;
    case ScalarOperands::any: return !is_complex(dtype);
  }
  throw InternalError("operands out of range");
}

DType result_dtype(ScalarOp op, DType operand) { return traits(op).compares ? boolean : operand; }

Scalar evaluate(ScalarOp op, DType dtype, std::span<const Scalar> args) {
  const auto arg = [&](std::size_t i) { return i < args.size() ? args[i] : Scalar{}; };
  return evaluate(op, dtype, arg(0), arg(1), arg(2));
}

Scalar evaluate(ScalarOp op, DType dtype, Scalar a, Scalar b, Scalar c) {
  return evaluate_inline(op, dtype, a, b, c);
}

Scalar evaluate_cast(DType from, DType to, Scalar value) {
  if (to == boolean) return {.integer = is_float(from) ? value.real != 0 : value.integer != 0};
  if (is_float(from) && is_float(to)) return {.real = round_to(to, value.real)};
  if (!is_float(from) && !is_float(to)) return {.integer = wrap_to(to, value.integer)};
  if (is_float(to)) return {.real = round_to(to, value.integer)};
  if (std::isnan(value.real)) return {};
  const auto [lowest, highest] = integer_limits(to);
  if (value.real <= static_cast<double>(lowest)) return {.integer = lowest};
  if (value.real >= static_cast<double>(highest)) return {.integer = highest};
  return {.integer = static_cast<std::int64_t>(value.real)};
}

Scalar evaluate_fma(DType dtype, Scalar a, Scalar b, Scalar c) { return fma_inline(dtype, a, b, c); }

float flushed(double x) {
  const auto value = static_cast<float>(x);
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

float flushed_fma(double a, double b, float c) {
  const float x = flushed(a), y = flushed(b), sum = std::fma(x, y, c);
  constexpr double least = std::numeric_limits<float>::min();
  if (std::abs(sum) != least) return flushed(sum);
  const double exact = std::abs(std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(c)));
  return exact < least * (1 - 0x1p-25) ? std::copysign(0.0f, sum) : sum;
}

Scalar evaluate_reduction(ScalarOp op, DType dtype, std::span<const Scalar> lanes) {
  std::vector<Scalar> work(lanes.begin(), lanes.end());
  for (std::size_t half = work.size() / 2; half >= 1; half /= 2)
    for (std::size_t i = 0; i < half; ++i) work[i] = evaluate(op, dtype, work[i], work[i + half], {});
  return work[0];
}

}  // namespace lathe::kernel
