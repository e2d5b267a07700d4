#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_memory() {
  return R"cuda(
// ---- memory; masked lanes read 0 and write nothing ----

template <int N, class T>
LATHE_FUNCTION vec<T, N> load(const T* p, i64 at) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = p[at + i];
  return r;
}
/// The address must be aligned to the vector's size, or to 16 bytes for larger vectors. Up to 16 bytes, 16-bit elements
/// move as pairs: otherwise ptxas splits and joins each pair with instructions of its own. Larger vectors are in
/// registers; as pairs, ptxas would not keep them there during asynchronous matmuls.
template <int N, class T>
LATHE_FUNCTION vec<T, N> load_aligned(const T* p, i64 at) {
  if constexpr (sizeof(T) == 2 && N % 2 == 0 && N <= 8) {
    const vec<u32, N / 2> pairs = *reinterpret_cast<const vec<u32, N / 2>*>(p + at);
    vec<T, N> r;
#pragma unroll
    for (int i = 0; i < N; ++i) r.lane[i].bits = static_cast<u16>(pairs.lane[i / 2] >> (16 * (i % 2)));
    return r;
  } else {
    return *reinterpret_cast<const vec<T, N>*>(p + at);
  }
}
template <int N, class T>
LATHE_FUNCTION vec<T, N> load_strided(const T* p, i64 at, i64 stride) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = p[at + i * stride];
  return r;
}
template <class T, class Index, int N>
LATHE_FUNCTION vec<T, N> gather(const T* p, vec<Index, N> at) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = p[at.lane[i]];
  return r;
}

template <class T>
LATHE_FUNCTION T load_if(bool mask, const T* p, i64 at) {
  return mask ? p[at] : T{};
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> load_if(vec<bool, N> mask, const T* p, i64 at) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = load_if(mask.lane[i], p, at + i);
  return r;
}
/// The address must be aligned as for load_aligned, and all lanes of the mask must be equal.
template <class T, int N>
LATHE_FUNCTION vec<T, N> load_aligned_if(vec<bool, N> mask, const T* p, i64 at) {
  return mask.lane[0] ? load_aligned<N>(p, at) : vec<T, N>{};
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> load_strided_if(vec<bool, N> mask, const T* p, i64 at, i64 stride) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = load_if(mask.lane[i], p, at + i * stride);
  return r;
}
template <class T, class Index, int N>
LATHE_FUNCTION vec<T, N> gather_if(vec<bool, N> mask, const T* p, vec<Index, N> at) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = load_if(mask.lane[i], p, at.lane[i]);
  return r;
}

template <class T, int N>
LATHE_FUNCTION void store(T* p, i64 at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[at + i] = value.lane[i];
}
template <class T, int N>
LATHE_FUNCTION void store_aligned(T* p, i64 at, vec<T, N> value) {
  if constexpr (sizeof(T) == 2 && N % 2 == 0 && N <= 8) {
    vec<u32, N / 2> pairs;
#pragma unroll
    for (int i = 0; i < N; i += 2) pairs.lane[i / 2] = u32(value.lane[i].bits) | u32(value.lane[i + 1].bits) << 16;
#ifdef __CUDA_ARCH__
    // Keeps the pair in one register: the compiler splits an array of pairs into one register per element.
    if constexpr (N == 2) asm("" : "+r"(pairs.lane[0]));
#endif
    *reinterpret_cast<vec<u32, N / 2>*>(p + at) = pairs;
  } else {
    *reinterpret_cast<vec<T, N>*>(p + at) = value;
  }
}
template <class T, int N>
LATHE_FUNCTION void store_strided(T* p, i64 at, i64 stride, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[at + i * stride] = value.lane[i];
}
template <class T, class Index, int N>
LATHE_FUNCTION void scatter(T* p, vec<Index, N> at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[at.lane[i]] = value.lane[i];
}

template <class T>
LATHE_FUNCTION void store_if(bool mask, T* p, i64 at, T value) {
  if (mask) p[at] = value;
}
template <class T, int N>
LATHE_FUNCTION void store_if(vec<bool, N> mask, T* p, i64 at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) store_if(mask.lane[i], p, at + i, value.lane[i]);
}
template <class T, int N>
LATHE_FUNCTION void store_strided_if(vec<bool, N> mask, T* p, i64 at, i64 stride, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) store_if(mask.lane[i], p, at + i * stride, value.lane[i]);
}
template <class T, class Index, int N>
LATHE_FUNCTION void scatter_if(vec<bool, N> mask, T* p, vec<Index, N> at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) store_if(mask.lane[i], p, at.lane[i], value.lane[i]);
}

template <class T>
LATHE_FUNCTION void prefetch(const T* p, i64 at) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p + at));
#endif
}

/// Records a failed check. The final status word is the lowest code of all failed checks of the launch, whatever the
/// order of the threads.
LATHE_FUNCTION void check(bool condition, u64 code, u64* status) {
  if (condition) return;
  u64 seen = *status;
  while (seen == 0 || seen > code) {
    const u64 before = atomicCAS(status, seen, code);
    if (before == seen) return;
    seen = before;
  }
}
)cuda";
}

}  // namespace lathe::cuda::detail
