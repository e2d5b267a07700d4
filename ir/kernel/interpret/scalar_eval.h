#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "ir/support/dtype.h"
#include "ir/support/numbers/scalar_op.h"

namespace lathe::kernel {

/// One element of any real type: `real` for floats (always exactly representable), else `integer`.
union Scalar {
  std::int64_t integer = 0;
  double real;
};

struct Instruction;
/// Returns the value of a constant, which all its lanes have.
Scalar constant_value(const Instruction& constant);

/// Returns the nearest value of a float type, ties to even, rounded once.
double round_to(DType dtype, double value);
double round_to(DType dtype, std::int64_t value);
/// Wraps to the width of an integer type; for boolean, nonzero becomes 1.
std::int64_t wrap_to(DType dtype, std::int64_t value);

/// Rounds to the nearest even; NaN stays a quiet NaN.
inline std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
std::uint16_t f16_bits(float value);
float f16_value(std::uint16_t bits);

/// Evaluates a scalar op on operands of type `dtype` with the semantics of builder.h. A comparison returns its
/// boolean in `integer`. For select, `dtype` is the type of the last two operands. Transcendental functions use the C
/// library in f64 and round once.
Scalar evaluate(ScalarOp op, DType dtype, std::span<const Scalar> args);
/// Same; operands beyond the op's arity are ignored.
Scalar evaluate(ScalarOp op, DType dtype, Scalar a, Scalar b, Scalar c);
Scalar evaluate_cast(DType from, DType to, Scalar value);
Scalar evaluate_fma(DType dtype, Scalar a, Scalar b, Scalar c);
/// Converts to f32 and flushes a subnormal to the zero of its sign.
float flushed(double x);
/// Returns the f32 fma of bf16 operands with subnormal operands and results flushed to signed zero. A result is
/// flushed if it is below the smallest normal number after rounding to 24 bits, even if the coarser rounding of a
/// subnormal would give that number.
float flushed_fma(double a, double b, float c);

/// Combines lanes [0, n/2) with lanes [n/2, n), and so on, until one is left.
Scalar evaluate_reduction(ScalarOp op, DType dtype, std::span<const Scalar> lanes);

/// Returns whether the op is defined on operands of this type.
bool is_defined(ScalarOp op, DType dtype);
/// Returns the type of the result.
DType result_dtype(ScalarOp op, DType operand);

}  // namespace lathe::kernel
