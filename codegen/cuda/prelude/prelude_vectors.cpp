#include <fmt/core.h>

#include "codegen/cuda/prelude/prelude.h"
#include "ir/support/numbers/scalar_op.h"

namespace lathe::cuda::detail {

std::string prelude_vectors() {
  std::string text = R"cuda(
// ---- lane-wise vector operations ----

#define LATHE_UNARY(f)                              \
  template <class T, int N>                         \
  LATHE_FUNCTION auto f(vec<T, N> a) {              \
    vec<decltype(f(a.lane[0])), N> r;               \
    _Pragma("unroll") for (int i = 0; i < N; ++i)   \
      r.lane[i] = f(a.lane[i]);                     \
    return r;                                       \
  }
#define LATHE_BINARY(f)                             \
  template <class T, int N>                         \
  LATHE_FUNCTION auto f(vec<T, N> a, vec<T, N> b) { \
    vec<decltype(f(a.lane[0], b.lane[0])), N> r;    \
    _Pragma("unroll") for (int i = 0; i < N; ++i)   \
      r.lane[i] = f(a.lane[i], b.lane[i]);          \
    return r;                                       \
  }
#define LATHE_OPERATOR(sign, f)                                 \
  template <class T, int N>                                     \
  LATHE_FUNCTION auto operator sign(vec<T, N> a, vec<T, N> b) { \
    return f(a, b);                                             \
  }

)cuda";
  for (const int arity : {1, 2})
    for (const ScalarOpTraits& scalar : all_scalar_ops())
      if (scalar.arity == arity && scalar.op != ScalarOp::cast)
        text += fmt::format("LATHE_{}({})\n", arity == 1 ? "UNARY" : "BINARY", scalar.name);
  return text + R"cuda(LATHE_OPERATOR(+, add)
LATHE_OPERATOR(-, sub)
LATHE_OPERATOR(*, mul)
LATHE_OPERATOR(/, div)
LATHE_OPERATOR(<, lt)
LATHE_OPERATOR(<=, le)
LATHE_OPERATOR(==, eq)
LATHE_OPERATOR(!=, ne)
LATHE_OPERATOR(&&, logical_and)
LATHE_OPERATOR(||, logical_or)
#undef LATHE_UNARY
#undef LATHE_BINARY
#undef LATHE_OPERATOR

template <class T, int N>
LATHE_FUNCTION vec<T, N> fma(vec<T, N> a, vec<T, N> b, vec<T, N> c) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = fma(a.lane[i], b.lane[i], c.lane[i]);
  return r;
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> select(vec<bool, N> condition, vec<T, N> a, vec<T, N> b) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = condition.lane[i] ? a.lane[i] : b.lane[i];
  return r;
}
template <class To, class From, int N>
LATHE_FUNCTION vec<To, N> cast(vec<From, N> a) {
  vec<To, N> r;
#ifdef __CUDA_ARCH__
  // Equals the lane-wise conversion, except for the bits of a NaN.
  constexpr bool to_bf16 = same_type<To, bf16>::value;
  if constexpr (same_type<From, f32>::value && (to_bf16 || same_type<To, f16>::value) && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      u32 both;
      if constexpr (to_bf16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(a.lane[i + 1]), "f"(a.lane[i]));
      else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(a.lane[i + 1]), "f"(a.lane[i]));
      r.lane[i].bits = static_cast<u16>(both);
      r.lane[i + 1].bits = static_cast<u16>(both >> 16);
    }
    return r;
  }
#endif
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = cast<To>(a.lane[i]);
  return r;
}
/// Returns base + lane * step for each lane.
template <int N, class T>
LATHE_FUNCTION vec<T, N> ramp(T base, T step) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = add(base, mul(T(i), step));
  return r;
}
/// Combines lanes [0, n/2) with lanes [n/2, n) until one lane is left.
template <class F, class T, int N>
LATHE_FUNCTION T reduce(F combine, vec<T, N> a) {
#pragma unroll
  for (int half = N / 2; half >= 1; half /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) a.lane[i] = combine(a.lane[i], a.lane[i + half]);
  return a.lane[0];
}
/// Selects lanes by number: [0, N) are the lanes of a, [N, 2 N) the lanes of b.
template <int... L, class T, int N>
LATHE_FUNCTION vec<T, static_cast<int>(sizeof...(L))> shuffle(const vec<T, N>& a, const vec<T, N>& b) {
  return {{(L < N ? a.lane[L < N ? L : 0] : b.lane[L < N ? 0 : L - N])...}};
}
template <int... L, class T>
LATHE_FUNCTION vec<T, static_cast<int>(sizeof...(L))> shuffle(T a, T b) {
  return {{(L == 0 ? a : b)...}};
}
)cuda";
}

}  // namespace lathe::cuda::detail
