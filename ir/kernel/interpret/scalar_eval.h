#pragma once

#include <cstdint>
#include <span>

#include "ir/support/dtype.h"
#include "ir/support/scalar_op.h"

namespace lathe::kernel {

/// One element of any real type: `real` for floats (always exactly representable), else `integer`.
struct Scalar {
  std::int64_t integer = 0;
  double real = 0;
};

/// The nearest value of a float type, ties to even, rounded once.
double round_to(DType dtype, double value);
double round_to(DType dtype, std::int64_t value);
/// Wraps to the width of an integer type; boolean: nonzero -> 1.
std::int64_t wrap_to(DType dtype, std::int64_t value);

std::uint16_t bf16_bits(float value);  ///< nearest even; NaN stays a quiet NaN
float bf16_value(std::uint16_t bits);
std::uint16_t f16_bits(float value);
float f16_value(std::uint16_t bits);

/// The meaning of every scalar op on operands of type `dtype`, as builder.h states it (the boolean of a comparison is
/// in `integer`). For select `dtype` is that of the last two. Transcendental functions use the C library in f64 and
/// round once.
Scalar evaluate(ScalarOp op, DType dtype, std::span<const Scalar> args);
/// The same; operands that the op has not may be anything.
Scalar evaluate(ScalarOp op, DType dtype, Scalar a, Scalar b, Scalar c);
Scalar evaluate_cast(DType from, DType to, Scalar value);
Scalar evaluate_fma(DType dtype, Scalar a, Scalar b, Scalar c);
/// As f32, a subnormal as the zero of its sign.
float flushed(double x);
/// fma of operands that bf16 holds, in f32, where subnormals count as zeros of their sign: operands, and a result
/// that is below the least normal number once rounded to 24 bits, though with the coarser last place of a subnormal
/// it would be rounded up to that number.
float flushed_fma(double a, double b, float c);

/// Lanes [0, n/2) combined with lanes [n/2, n), and so on, until one is left.
Scalar evaluate_reduction(ScalarOp op, DType dtype, std::span<const Scalar> lanes);

/// Whether the op is defined on operands of this type.
bool is_defined(ScalarOp op, DType dtype);
/// The type of the result.
DType result_dtype(ScalarOp op, DType operand);

}  // namespace lathe::kernel
