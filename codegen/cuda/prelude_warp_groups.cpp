#include "codegen/cuda/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_warp_groups() {
  return R"cuda(
// ---- tensor cores of sm_90a: the 128 threads of a warp group multiply panels that lie in shared memory ----

/// Lines of 64 elements, 64 of them a panel; of each line the piece of 16 bytes number i stands at i ^ (line % 8).
template <class T, bool is_transposed>
struct Panels {
  const T* first;
};
template <class T>
LATHE_FUNCTION Panels<T, false> panels(const T* p, i32 first) {
  return {p + first};
}
template <class T>
LATHE_FUNCTION Panels<T, true> transposed_panels(const T* p, i32 first) {
  return {p + first};
}

/// What wgmma is told of an operand: its address; from one panel to the next, 8192 bytes; from 8 lines to the next 8,
/// 1024 bytes; the 128-byte swizzle. All but the last in units of 16 bytes.
LATHE_FUNCTION u64 panel_descriptor(const void* first) {
  return u64(shared_address(first) % (1 << 18) / 16) | u64(8192 / 16) << 16 | u64(1024 / 16) << 32 | u64(1) << 62;
}
/// From there to the next 16 elements that are summed over: along a line, or lines.
template <bool is_transposed>
LATHE_FUNCTION u64 next_sixteen() {
  return (is_transposed ? 16 * 128 : 16 * 2) / 16;
}

/// sum[64 x 128] += a[64 x 16] * b[16 x 128], started
template <class T, bool A, bool B>
LATHE_FUNCTION void wgmma_64x128x16(f32* sum, u64 a, u64 b) {
#ifdef __CUDA_ARCH__
#define LATHE_EIGHT(i)                                                                                        \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]),     \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define LATHE_WGMMA(type)                                                                                     \
  asm volatile(                                                                                               \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " "                                        \
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
      "%64, %65, 1, 1, 1, %66, %67;"                                                                          \
      : LATHE_EIGHT(0), LATHE_EIGHT(8), LATHE_EIGHT(16), LATHE_EIGHT(24), LATHE_EIGHT(32), LATHE_EIGHT(40),   \
        LATHE_EIGHT(48), LATHE_EIGHT(56)                                                                      \
      : "l"(a), "l"(b), "n"(A), "n"(B))
  if constexpr (same_type<T, bf16>::value)
    LATHE_WGMMA("bf16");
  else
    LATHE_WGMMA("f16");
#undef LATHE_WGMMA
#undef LATHE_EIGHT
#else
  const auto value = [](u16 bits) { return widen(T{bits}); };
  shim_wgmma(value, sum, a, b, A, B);
#endif
}
/// Nothing is known of the sums from here on: ptxas makes wgmma one after the other that start from zeros which it
/// knows (C7518, C7520); and what is done with them after a wait stays behind it.
LATHE_FUNCTION void touch(vec<f32, 64>& sums) {
#ifdef __CUDA_ARCH__
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(sums.lane[i])::"memory");
#endif
}
/// What has been started becomes a group; waits until at most the `pending` latest groups are under way.
LATHE_FUNCTION void commit_wgmma() {
#ifdef __CUDA_ARCH__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  shim_commit_wgmma();
#endif
}
template <int pending>
LATHE_FUNCTION void wait_wgmma() {
#ifdef __CUDA_ARCH__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#else
  shim_wait_wgmma(pending);
#endif
}

/// Starts sums += left * right^T over 64 elements, for all threads of a warp group together: 64 rows, 16 of which a
/// warp has, by 128 columns. A thread's sums are those of mma of 16 x 128; they stay where they are, and nobody else
/// touches them before a wait.
template <class T, bool A, bool B>
LATHE_FUNCTION void group_mma(vec<f32, 64>& sums, Panels<T, A> left, Panels<T, B> right) {
  const u64 a = panel_descriptor(left.first), b = panel_descriptor(right.first);
#ifdef __CUDA_ARCH__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
#pragma unroll
  for (int k = 0; k < 4; ++k)
    wgmma_64x128x16<T, A, B>(sums.lane, a + k * next_sixteen<A>(), b + k * next_sixteen<B>());
}
)cuda";
}

}  // namespace lathe::cuda::detail
