#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_types() {
  return R"cuda(
// ---- types ----

using f32 = float;
using f64 = double;
using i8 = signed char;
using u8 = unsigned char;
using i32 = int;
using i64 = long long;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

/// Storage types: loaded, stored and cast; arithmetic is in f32.
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};

/// A vector, aligned so that one memory access reads or writes up to 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) vec {
  T lane[N];
};

template <int N, class T>
LATHE_FUNCTION vec<T, N> broadcast(T x) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = x;
  return r;
}

LATHE_FUNCTION i32 bits_of(f32 x) { return __float_as_int(x); }
LATHE_FUNCTION i64 bits_of(f64 x) { return __double_as_longlong(x); }
LATHE_FUNCTION f32 from_bits(i32 x) { return __int_as_float(x); }
LATHE_FUNCTION f64 from_bits(i64 x) { return __longlong_as_double(x); }
)cuda";
}

}  // namespace lathe::cuda::detail
