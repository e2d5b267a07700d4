#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_f64_math() {
  return R"cuda(
/// Returns sin x (quadrant 0) or cos x (quadrant 1), computed in f64: x = n pi/2 + r, |r| <= pi/4, and Taylor series.
LATHE_FUNCTION f32 sine(f32 x, i32 quadrant) {
  const f64 wide = x;
  if (!(abs(x) <= 0x1p22f)) return static_cast<f32>(quadrant == 0 ? ::sin(wide) : ::cos(wide));
  const f64 n = ::rint(wide * 0.63661977236758134308);
  // pi/2 in two parts: n has at most 22 bits and the first part 24, so their product is exact.
  f64 r = fma(n, -1.5707962512969971, wide);
  r = fma(n, -7.5497899548918822e-8, r);
  const f64 z = r * r;
  const f64 s = fma(z * r, horner(z, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6), r);
  const f64 c = fma(z, horner(z, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5), 1.0);
  quadrant += static_cast<i32>(n);
  const f64 value = quadrant & 1 ? c : s;
  return static_cast<f32>(quadrant & 2 ? -value : value);
}
/// Zeros skip the range reduction, which would lose the sign of -0.
LATHE_FUNCTION f32 sin(f32 x) { return x == 0.0f ? x : sine(x, 0); }
LATHE_FUNCTION f32 cos(f32 x) { return sine(x, 1); }

/// Returns log2 of a positive f32 number as k + 2/ln 2 * atanh(s), s = (m - 1) / (m + 1).
LATHE_FUNCTION f64 log2_f64(f64 a) {
  const i64 offset = sub(bits_of(a), 0x3fe6a09e667f3bcdLL);
  const f64 k = static_cast<f64>(static_cast<i32>(offset >> 52));
  const f64 m = from_bits(add(offset & 0xfffffffffffffLL, 0x3fe6a09e667f3bcdLL));
  const f64 s = (m - 1.0) / (m + 1.0), scale = 2.8853900817779268147;
  const f64 series = horner(s * s, scale / 17, scale / 15, scale / 13, scale / 11, scale / 9, scale / 7, scale / 5,
                            scale / 3, scale);
  return fma(s, series, k);
}

/// Returns 2^p for |p| <= 1000.
LATHE_FUNCTION f64 exp2_f64(f64 p) {
  const f64 n = ::rint(p), t = (p - n) * 0.69314718055994530942;
  const f64 e = horner(t, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                       1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
  return e * from_bits((static_cast<i64>(static_cast<i32>(n)) + 1023) << 52);
}

/// |x|^y = 2^(y log2 |x|) in f64, then the special cases of the C standard.
LATHE_FUNCTION f32 pow(f32 x, f32 y) {
  const f32 infinite = from_bits(0x7f800000), nan = from_bits(0x7fc00000);
  const f64 wide = abs(x), most = infinite;
  const f64 logarithm = wide == 0.0 ? -most : wide < most ? log2_f64(wide) : wide;
  const f64 p = static_cast<f64>(y) * logarithm;
  const f64 clamped = p != p ? 0.0 : p > 300.0 ? 300.0 : p < -300.0 ? -300.0 : p;
  const f32 magnitude = p != p ? nan : static_cast<f32>(exp2_f64(clamped));
  const bool whole = floor(y) == y, odd = whole && floor(y * 0.5f) != y * 0.5f && abs(y) < infinite;
  if (x == 1.0f || y == 0.0f || (abs(x) == 1.0f && abs(y) == infinite)) return 1.0f;
  if (x < 0.0f && x > -infinite && !whole && y == y) return nan;
  return odd && bits_of(x) < 0 ? -magnitude : magnitude;
}
)cuda";
}

}  // namespace lathe::cuda::detail
