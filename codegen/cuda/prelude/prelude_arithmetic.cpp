#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_arithmetic() {
  return R"cuda(
// ---- arithmetic ----
// Integers wrap, x / 0 = x rem 0 = 0, and shifts by the width or more give 0. Emitted code uses operators for floats.

LATHE_FUNCTION i32 add(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) + static_cast<u32>(b)); }
LATHE_FUNCTION i64 add(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b)); }
LATHE_FUNCTION i32 sub(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) - static_cast<u32>(b)); }
LATHE_FUNCTION i64 sub(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b)); }
LATHE_FUNCTION i32 mul(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) * static_cast<u32>(b)); }
LATHE_FUNCTION i64 mul(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b)); }
LATHE_FUNCTION i32 neg(i32 a) { return sub(0, a); }
LATHE_FUNCTION i64 neg(i64 a) { return sub(i64(0), a); }

template <class T>
LATHE_FUNCTION T div(T a, T b) {
  return b == 0 ? T(0) : b == -1 ? neg(a) : a / b;
}
LATHE_FUNCTION f32 div(f32 a, f32 b) { return a / b; }
LATHE_FUNCTION f64 div(f64 a, f64 b) { return a / b; }
template <class T>
LATHE_FUNCTION T rem(T a, T b) {
  return b == 0 || b == -1 ? T(0) : a % b;
}

LATHE_FUNCTION f32 add(f32 a, f32 b) { return a + b; }
LATHE_FUNCTION f64 add(f64 a, f64 b) { return a + b; }
LATHE_FUNCTION f32 sub(f32 a, f32 b) { return a - b; }
LATHE_FUNCTION f64 sub(f64 a, f64 b) { return a - b; }
LATHE_FUNCTION f32 mul(f32 a, f32 b) { return a * b; }
LATHE_FUNCTION f64 mul(f64 a, f64 b) { return a * b; }
LATHE_FUNCTION f32 neg(f32 a) { return -a; }
LATHE_FUNCTION f64 neg(f64 a) { return -a; }
LATHE_FUNCTION f32 fma(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
LATHE_FUNCTION f64 fma(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }

/// Returns NaN if either is NaN, and b if both are equal. The f32 instructions on a GPU order -0 before +0.
template <class T>
LATHE_FUNCTION T min(T a, T b) {
  return a != a ? a : a < b ? a : b;
}
template <class T>
LATHE_FUNCTION T max(T a, T b) {
  return a != a ? a : b < a ? a : b;
}
#ifdef __CUDA_ARCH__
LATHE_FUNCTION f32 min(f32 a, f32 b) {
  f32 r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
LATHE_FUNCTION f32 max(f32 a, f32 b) {
  f32 r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#endif
/// Returns NaN and zeros unchanged.
template <class T>
LATHE_FUNCTION T sign(T a) {
  return a > T(0) ? T(1) : a < T(0) ? T(-1) : a;
}
LATHE_FUNCTION i32 abs(i32 a) { return a < 0 ? neg(a) : a; }
LATHE_FUNCTION i64 abs(i64 a) { return a < 0 ? neg(a) : a; }
LATHE_FUNCTION f32 abs(f32 a) { return ::fabsf(a); }
LATHE_FUNCTION f64 abs(f64 a) { return ::fabs(a); }
LATHE_FUNCTION f32 floor(f32 a) { return ::floorf(a); }
LATHE_FUNCTION f64 floor(f64 a) { return ::floor(a); }
LATHE_FUNCTION f32 round(f32 a) { return ::rintf(a); }
LATHE_FUNCTION f64 round(f64 a) { return ::rint(a); }
LATHE_FUNCTION f32 sqrt(f32 a) { return __fsqrt_rn(a); }
LATHE_FUNCTION f64 sqrt(f64 a) { return __dsqrt_rn(a); }
LATHE_FUNCTION f32 rsqrt(f32 a) { return 1.0f / sqrt(a); }
LATHE_FUNCTION f64 rsqrt(f64 a) { return 1.0 / sqrt(a); }

LATHE_FUNCTION bool fits(i32 amount) { return static_cast<u32>(amount) < 32; }
LATHE_FUNCTION bool fits(i64 amount) { return static_cast<u64>(amount) < 64; }
LATHE_FUNCTION i32 shift_left(i32 a, i32 n) { return fits(n) ? static_cast<i32>(static_cast<u32>(a) << n) : 0; }
LATHE_FUNCTION i64 shift_left(i64 a, i64 n) { return fits(n) ? static_cast<i64>(static_cast<u64>(a) << n) : 0; }
LATHE_FUNCTION i32 shift_right(i32 a, i32 n) { return fits(n) ? static_cast<i32>(static_cast<u32>(a) >> n) : 0; }
LATHE_FUNCTION i64 shift_right(i64 a, i64 n) { return fits(n) ? static_cast<i64>(static_cast<u64>(a) >> n) : 0; }
LATHE_FUNCTION i32 bit_and(i32 a, i32 b) { return a & b; }
LATHE_FUNCTION i64 bit_and(i64 a, i64 b) { return a & b; }
LATHE_FUNCTION i32 bit_or(i32 a, i32 b) { return a | b; }
LATHE_FUNCTION i64 bit_or(i64 a, i64 b) { return a | b; }
LATHE_FUNCTION i32 bit_xor(i32 a, i32 b) { return a ^ b; }
LATHE_FUNCTION i64 bit_xor(i64 a, i64 b) { return a ^ b; }

template <class T>
LATHE_FUNCTION bool eq(T a, T b) {
  return a == b;
}
template <class T>
LATHE_FUNCTION bool ne(T a, T b) {
  return a != b;
}
template <class T>
LATHE_FUNCTION bool lt(T a, T b) {
  return a < b;
}
template <class T>
LATHE_FUNCTION bool le(T a, T b) {
  return a <= b;
}
LATHE_FUNCTION bool logical_and(bool a, bool b) { return a && b; }
LATHE_FUNCTION bool logical_or(bool a, bool b) { return a || b; }
LATHE_FUNCTION bool logical_not(bool a) { return !a; }
template <class T>
LATHE_FUNCTION T select(bool condition, T if_true, T if_false) {
  return condition ? if_true : if_false;
}
)cuda";
}

}  // namespace lathe::cuda::detail
