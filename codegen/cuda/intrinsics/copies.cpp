#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/intrinsics/gpu/async_copy.h"

namespace lathe::cuda {

namespace {

std::string async_copy_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::AsyncCopy::of(in);
  const std::string count = s.count == kernel::none ? "" : ", " + k.value(s.count);
  return fmt::format("async_copy({}, {}, {}, {}{})", k.buffer(s.to), k.value(s.to_index), k.buffer(s.from),
                     k.value(s.from_index), count);
}

std::string commit_text(const kernel::Instruction&, const KernelText&) { return "commit_copies()"; }

std::string wait_copies_text(const kernel::Instruction& in, const KernelText&) {
  return fmt::format("wait_copies<{}>()", kernel::WaitCopies::of(in).pending);
}

constexpr std::string_view copy_device_text = R"cuda(
// ---- asynchronous copies to shared memory, 16 bytes each ----

LATHE_FUNCTION u32 shared_address(const void* p) {
#ifdef __CUDA_ARCH__
  return static_cast<u32>(__cvta_generic_to_shared(p));
#else
  return shim_shared_address(p);
#endif
}

/// Copies the first `bytes` of 16 bytes from global memory and fills the rest with zeros.
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
/// Copies up to `count` elements and fills the rest with zeros; elements past `count` are not read.
template <class T, class Count>
LATHE_FUNCTION void async_copy(T* to, i64 at, const T* from, i64 from_at, Count count) {
  const Count inside = min(max(count, Count(0)), Count(16 / sizeof(T)));
  cp_async(to + at, inside > 0 ? from + from_at : from, static_cast<int>(inside * sizeof(T)));
}
/// Groups the copies that this thread has started since its last commit.
LATHE_FUNCTION void commit_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  shim_commit_copies();
#endif
}
/// Waits until at most the latest `pending` groups of this thread are in flight.
template <int pending>
LATHE_FUNCTION void wait_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
  shim_wait_copies(pending);
#endif
}
)cuda";

constexpr std::string_view copy_words[] = {"async_copy", "commit_copies", "wait_copies"};
constexpr IntrinsicHook copy_table[] = {{&kernel::async_copy_record, async_copy_text},
                                        {&kernel::commit_copies_record, commit_text},
                                        {&kernel::wait_copies_record, wait_copies_text}};

}  // namespace

extern const HookFamily copy_hooks;
constinit const HookFamily copy_hooks{copy_device_text, copy_words, copy_table};

}  // namespace lathe::cuda
