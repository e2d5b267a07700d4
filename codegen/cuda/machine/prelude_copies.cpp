#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_copies() {
  return R"cuda(
// ---- asynchronous copies to shared memory, 16 bytes each ----

LATHE_FUNCTION u32 shared_address(const void* p) {
#ifdef __CUDA_ARCH__
  return static_cast<u32>(__cvta_generic_to_shared(p));
#else
  return shim_shared_address(p);
#endif
}

/// The first `bytes` of 16 from global memory, zeros behind.
LATHE_FUNCTION void cp_async(void* to, const void* from, int bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes));
#else
  shim_cp_async(to, from, bytes);
#endif
}

template <class T>
LATHE_FUNCTION void async_copy(T* to, i64 at, const T* from, i64 from_at) {
  cp_async(to + at, from + from_at, 16);
}
/// Zeros beyond the first `count` elements, which are the only ones that are read.
template <class T, class Count>
LATHE_FUNCTION void async_copy(T* to, i64 at, const T* from, i64 from_at, Count count) {
  const Count inside = min(max(count, Count(0)), Count(16 / sizeof(T)));
  cp_async(to + at, inside > 0 ? from + from_at : from, static_cast<int>(inside * sizeof(T)));
}
/// What this thread has started since its last commit becomes a group.
LATHE_FUNCTION void commit_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  shim_commit_copies();
#endif
}
/// Waits until at most the latest `pending` groups of this thread are under way.
template <int pending>
LATHE_FUNCTION void wait_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
  shim_wait_copies(pending);
#endif
}
)cuda";
}

}  // namespace lathe::cuda::detail
