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

/// The nearest value of a float type, ties to even; f64 -> bf16 and f64 -> f16 go through f32.
double round_to(DType dtype, double value);
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
Scalar evaluate_cast(DType from, DType to, Scalar value);
Scalar evaluate_fma(DType dtype, Scalar a, Scalar b, Scalar c);
/// One lane of dot_pairs, as VDPBF16PS has it: fma(a[0], b[0], fma(a[1], b[1], c)) in f32, where subnormal operands
/// count as zeros of their sign, and so do results of either fma that are so small when rounded to 24 bits.
Scalar evaluate_dot_pair(const Scalar* a, const Scalar* b, Scalar c);

/// Slice 0, 1 or 2 of an f32, bf16 whose sum it is: the first two are the nearest to what is left, away from zero
/// between two. A subnormal slice may lose its last bits. Of infinities, of NaN and of what the first slice rounds to
/// infinity the last slice is NaN, whose bits are not stated, and the sum is nothing.
Scalar evaluate_slice(Scalar x, std::int64_t slice);

/// One sum of a tile_mma after one step, as TDPBF16PS has it: c + (even + odd), where `even` and `odd` are sums of 16
/// products each, from 0, of the elements of even and odd k in ascending order, one fma a product. All of it in f32,
/// rounded to nearest even, where subnormal operands count as zeros of their sign, and so do results that are so
/// small when rounded to 24 bits. a, b: tile_depth elements in order of k.
Scalar evaluate_tile_sum(const Scalar* a, const Scalar* b, Scalar c);

/// Lanes [0, n/2) combined with lanes [n/2, n), and so on, until one is left.
Scalar evaluate_reduction(ScalarOp op, DType dtype, std::span<const Scalar> lanes);

bool is_transcendental(ScalarOp op);  ///< pow, exp, log, sin, cos, tanh, erf
/// Whether the op is defined on operands of this type.
bool is_defined(ScalarOp op, DType dtype);
bool is_comparison(ScalarOp op);
/// The type of the result.
DType result_dtype(ScalarOp op, DType operand);

}  // namespace lathe::kernel
