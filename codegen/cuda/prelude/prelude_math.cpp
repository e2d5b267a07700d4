#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_math() {
  return R"cuda(
// ---- math functions: f32 as accurate as docs/kernel-ir.md states; f64 from the device's library ----

/// Evaluates a polynomial; coefficients start with the highest degree.
template <class T, class... C>
LATHE_FUNCTION T horner_step(T x, T sum, T c, C... rest) {
  if constexpr (sizeof...(rest) == 0)
    return fma(sum, x, c);
  else
    return horner_step(x, fma(sum, x, c), rest...);
}
template <class T, class... C>
LATHE_FUNCTION T horner(T x, T first, T second, C... rest) {
  return horner_step(x, first, second, rest...);
}

/// Returns x * 2^n for |n| <= 252, rounded once: both factors are normal numbers. NaN if x is NaN.
LATHE_FUNCTION f32 scale_by_power(f32 x, i32 n) {
  const i32 half = n >> 1;
  return x * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23);
}

/// Returns 2^(i/16), where only the last four bits of i count.
LATHE_FUNCTION f32 sixteenth_power(i32 i) {
  static const f32 powers[16] = {0x1.000000p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
                                 0x1.306fe0p+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
                                 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
                                 0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
  return powers[i & 15];
}

// On a GPU, exp, log, tanh and erf are those of CUDA's library, which uses the hardware's ex2 and rcp. Host builds use
// the polynomials below.

/// Cody-Waite reduction x = n ln 2 + r, with n a multiple of 1/16 and ln 2 in two parts; n times the first is exact.
LATHE_FUNCTION f32 exp(f32 x) {
#ifdef __CUDA_ARCH__
  return ::expf(x);
#else
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const f32 shifted = fma(x, 1.44269504088896341f, 0x1.8p+19f);
  const f32 n = shifted - 0x1.8p+19f;
  f32 r = fma(n, -0.693359375f, x);
  r = fma(n, 2.12194440e-4f, r);
  const f32 power = sixteenth_power(bits_of(shifted));
  const f32 p = horner(r, 0.16666667f, 0.500021f, 1.0f);
  return scale_by_power(fma(p, r * power, power), (sub(bits_of(shifted), 0x49400000)) >> 4);
#endif
}

/// log x = k ln 2 + log m with m in [sqrt(1/2), sqrt(2)); log(1 + f) is a series in s = f / (2 + f).
LATHE_FUNCTION f32 log(f32 x) {
#ifdef __CUDA_ARCH__
  return ::logf(x);
#else
  const bool tiny = x < 0x1p-126f;
  const i32 offset = sub(bits_of(tiny ? x * 0x1p25f : x), 0x3f3504f3);
  const f32 k = static_cast<f32>(offset >> 23) + (tiny ? -25.0f : 0.0f);
  const f32 f = from_bits((offset & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const f32 s = f / (f + 2.0f), z = s * s;
  const f32 series = z * horner(z, 0.24279078841f, 0.28498786688f, 0.40000972152f, 0.66666662693f);
  const f32 half_square = f * 0.5f * f;
  const f32 low = fma(k, 9.0580006145e-06f, s * (half_square + series));
  const f32 result = fma(k, 6.9313812256e-01f, low - half_square + f);
  if (x < 0.0f) return from_bits(0x7fc00000);
  if (x == 0.0f) return from_bits(static_cast<i32>(0xff800000));
  return x < from_bits(0x7f800000) ? result : x;
#endif
}

/// x + x^3 P(x^2) for |x| < 0.675, with a minimax P; otherwise 1 - 2 / (e^2|x| + 1).
LATHE_FUNCTION f32 tanh(f32 x) {
#ifdef __CUDA_ARCH__
  return ::tanhf(x);
#else
  const f32 magnitude = abs(x), z = x * x;
  const f32 large = 1.0f - 2.0f / (exp(magnitude * 2.0f) + 1.0f);
  const f32 p = horner(z, 0.00215268391f, -0.00819001347f, 0.021706894f, -0.0539481789f, 0.133332208f, -0.333333313f);
  return ::copysignf(magnitude < 0.675f ? fma(z * x, p, x) : large, x);
#endif
}

/// x + x R(x^2) for |x| < 0.9375; otherwise 1 - e^(-t + t S(t)) with t = min(|x|, 4). R and S are minimax.
LATHE_FUNCTION f32 erf(f32 x) {
#ifdef __CUDA_ARCH__
  return ::erff(x);
#else
  const f32 magnitude = abs(x), t = magnitude > 4.0f ? 4.0f : magnitude, z = x * x;
  const f32 s = horner(t, -1.12300695e-05f, 0.000322794251f, -0.00364242983f, 0.0237620194f, -0.106236845f,
                       -0.635151327f, -0.12864849f);
  const f32 large = 1.0f - exp(fma(s, t, -t));
  const f32 r = horner(z, 8.00027919e-05f, -0.000805038435f, 0.00519243814f, -0.026855737f, 0.112836257f,
                       -0.376126289f, 0.128379166f);
  return magnitude < 0.9375f ? fma(r, x, x) : ::copysignf(large, x);
#endif
}

LATHE_FUNCTION f64 exp(f64 x) { return ::exp(x); }
LATHE_FUNCTION f64 log(f64 x) { return ::log(x); }
LATHE_FUNCTION f64 tanh(f64 x) { return ::tanh(x); }
LATHE_FUNCTION f64 erf(f64 x) { return ::erf(x); }
LATHE_FUNCTION f64 sin(f64 x) { return ::sin(x); }
LATHE_FUNCTION f64 cos(f64 x) { return ::cos(x); }
LATHE_FUNCTION f64 pow(f64 x, f64 y) { return ::pow(x, y); }
)cuda";
}

}  // namespace lathe::cuda::detail
