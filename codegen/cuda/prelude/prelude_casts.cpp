#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_casts() {
  return R"cuda(
// ---- casts ----

LATHE_FUNCTION f32 widen(bf16 x) { return from_bits(static_cast<i32>(static_cast<u32>(x.bits) << 16)); }

/// Rounds to nearest, ties to even; keeps subnormals; quiets NaN.
LATHE_FUNCTION bf16 narrow_bf16(f32 x) {
  const u32 bits = static_cast<u32>(bits_of(x));
  return {static_cast<u16>(x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// Multiplying by a power of 2 rebiases the exponent and normalizes subnormals.
LATHE_FUNCTION f32 widen(f16 x) {
  const i32 sign = (x.bits & 0x8000) << 16, magnitude = (x.bits & 0x7fff) << 13;
  const i32 finite = bits_of(from_bits(magnitude) * 0x1p112f);
  const i32 special = magnitude | 0x7f800000 | (magnitude > 0x0f800000 ? 0x400000 : 0);
  return from_bits(sign | (magnitude >= 0x0f800000 ? special : finite));
}

LATHE_FUNCTION f16 narrow_f16(f32 x) {
  const u32 bits = static_cast<u32>(bits_of(x)), sign = bits >> 16 & 0x8000, absolute = bits & 0x7fffffff;
  const f32 magnitude = from_bits(static_cast<i32>(absolute));
  u32 result = (absolute + 0xfff + (absolute >> 13 & 1) - (112u << 23)) >> 13;
  // Adding 0.5 leaves units of 2^-24, rounded to even, in the low bits.
  if (magnitude < 0x1p-14f) result = static_cast<u32>(bits_of(magnitude + 0.5f)) - 0x3f000000u;
  if (magnitude >= 65520.0f) result = 0x7c00;
  if (x != x) result = 0x7e00 | (absolute >> 13 & 0x1ff);
  return {static_cast<u16>(sign | result)};
}

/// Rounds to odd: if x is not an f32, returns the adjacent f32 whose last bit is 1. Rounding the result to 16 bits
/// then equals rounding x once.
LATHE_FUNCTION f32 to_odd(f64 x) {
  const f32 nearest = static_cast<f32>(x);
  const f64 back = static_cast<f64>(nearest), magnitude = x < 0 ? -x : x;
  if (back == x || x != x) return nearest;
  return from_bits(static_cast<i32>((static_cast<u32>(bits_of(nearest)) - ((back < 0 ? -back : back) > magnitude)) | 1));
}

/// From 2^53 on, the lowest kept bit is a sticky bit: it is set if any bit below it is.
LATHE_FUNCTION f32 to_odd(i64 x) {
  const i64 exact = 1LL << 53, rest = x & 0x7ff;
  return to_odd(static_cast<f64>(-exact <= x && x <= exact ? x : ((x - rest) | (rest != 0 ? 0x800 : 0))));
}
LATHE_FUNCTION f32 to_odd(i32 x) { return to_odd(static_cast<f64>(x)); }
LATHE_FUNCTION f32 to_odd(f32 x) { return x; }
LATHE_FUNCTION f32 to_odd(bool x) { return static_cast<f32>(x); }
LATHE_FUNCTION f32 to_odd(i8 x) { return static_cast<f32>(x); }
LATHE_FUNCTION f32 to_odd(u8 x) { return static_cast<f32>(x); }

/// Truncates and saturates; returns 0 for NaN.
template <class F>
LATHE_FUNCTION i32 to_i32(F x) {
  if (x != x) return 0;
  return x <= F(-0x1p31) ? -2147483647 - 1 : x >= F(0x1p31) ? 2147483647 : static_cast<i32>(x);
}
template <class F>
LATHE_FUNCTION i64 to_i64(F x) {
  const i64 most = 9223372036854775807LL;
  if (x != x) return 0;
  return x <= F(-0x1p63) ? -most - 1 : x >= F(0x1p63) ? most : static_cast<i64>(x);
}

/// Converts to i8 or u8 like to_i32: truncates and saturates.
template <class Byte, class F>
LATHE_FUNCTION Byte to_byte(F x) {
  const i32 least = Byte(-1) < 0 ? -128 : 0, most = least + 255, number = to_i32(x);
  return static_cast<Byte>(number < least ? least : number > most ? most : number);
}

template <class A, class B>
struct same_type {
  enum : bool { value = false };
};
template <class A>
struct same_type<A, A> {
  enum : bool { value = true };
};

/// Converts between any two element types; rounds floats once.
template <class To, class From>
LATHE_FUNCTION To cast(From x) {
  if constexpr (same_type<To, From>::value) {
    return x;
  } else if constexpr (same_type<From, bf16>::value || same_type<From, f16>::value) {
    return cast<To>(widen(x));
  } else if constexpr (same_type<To, bf16>::value) {
    return narrow_bf16(to_odd(x));
  } else if constexpr (same_type<To, f16>::value) {
    return narrow_f16(to_odd(x));
  } else if constexpr (same_type<To, bool>::value) {
    return x != From(0);
  } else if constexpr (same_type<From, f32>::value || same_type<From, f64>::value) {
    if constexpr (same_type<To, i32>::value)
      return to_i32(x);
    else if constexpr (same_type<To, i64>::value)
      return to_i64(x);
    else if constexpr (same_type<To, i8>::value || same_type<To, u8>::value)
      return to_byte<To>(x);
    else
      return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}
)cuda";
}

}  // namespace lathe::cuda::detail
