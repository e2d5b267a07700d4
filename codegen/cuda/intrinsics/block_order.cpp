#include "ir/kernel/intrinsics/gpu/grid/block_order.h"

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"

namespace lathe::cuda {

namespace {

std::string wait_block_turn_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::WaitBlockTurn::of(in);
  return fmt::format("wait_block_turn(&{}[{}], {})", k.buffer(s.turns), k.arg(0), k.arg(1));
}

std::string pass_block_turn_text(const kernel::Instruction& in, const KernelText& k) {
  return fmt::format("pass_block_turn(&{}[{}])", k.buffer(kernel::PassBlockTurn::of(in).turns), k.arg(0));
}

std::string add_in_turn_text(const kernel::Instruction& in, const KernelText& k) {
  return fmt::format("add_in_turn(&{}[{}], {})", k.buffer(kernel::AddInTurn::of(in).sums), k.arg(0), k.arg(1));
}

// Follows the PTX ISA, section "Memory Consistency Model": a release at gpu scope by one thread, after a barrier of
// its warpgroup, and an acquire of the value by a thread of another block, before a barrier of that one's warpgroup,
// order all accesses of the first warpgroup before all accesses of the second one (causality order).
constexpr std::string_view block_order_device_text = R"cuda(
// ---- an order between blocks ----

/// Returns the number of blocks that have started before. All threads call it first. Blocks are numbered in the order
/// in which they start, so a block that waits for one of a lower number waits for one that runs.
LATHE_FUNCTION i32 next_block(i32* started, u64* shared) {
  if (threadIdx.x == 0) *reinterpret_cast<i32*>(shared) = atomicAdd(started, 1);
  __syncthreads();
  return *reinterpret_cast<const i32*>(shared);
}
/// Synchronizes the 128 threads of this warpgroup. The barriers before 8 are those of pipelines.
LATHE_FUNCTION void warpgroup_barrier() {
  const u32 own = threadIdx.x / 128 + 8;
#ifdef __CUDA_ARCH__
  asm volatile("bar.sync %0, 128;" ::"r"(own) : "memory");
#else
  shim_named_barrier(own, 128, true);
#endif
}
/// Waits until `rank` blocks have passed a turn. Called by a warpgroup.
LATHE_FUNCTION void wait_block_turn(const i32* passed, i64 rank) {
  if (threadIdx.x % 128 == 0) {
#ifdef __CUDA_ARCH__
    i32 now;
    do
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(passed) : "memory");
    while (now != i32(rank));
#else
    shim_wait_blocks(passed, i32(rank));
#endif
  }
  warpgroup_barrier();
}
/// Passes the turn after everything that the warpgroup has stored.
LATHE_FUNCTION void pass_block_turn(i32* passed) {
  warpgroup_barrier();
  if (threadIdx.x % 128 != 0) return;
#ifdef __CUDA_ARCH__
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(passed) : "memory");
#else
  shim_pass_block(passed);
#endif
}
/// Adds to 4 sums at a multiple of 16 bytes.
template <int lanes>
LATHE_FUNCTION void add_in_turn(f32* sums, const vec<f32, lanes>& terms) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static_assert(lanes == 4, "one instruction");
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums), "f"(terms.lane[0]),
               "f"(terms.lane[1]), "f"(terms.lane[2]), "f"(terms.lane[3])
               : "memory");
#else
#pragma unroll
  for (int i = 0; i < lanes; ++i) sums[i] += terms.lane[i];
#endif
}
)cuda";

constexpr std::string_view block_order_words[] = {"next_block",      "block_number",    "warpgroup_barrier",
                                                  "wait_block_turn", "pass_block_turn", "add_in_turn"};
constexpr bool is_stage = false, orders_blocks = true;
constexpr IntrinsicHook block_order_table[] = {
    {&kernel::wait_block_turn_record, wait_block_turn_text, is_stage, orders_blocks},
    {&kernel::pass_block_turn_record, pass_block_turn_text, is_stage, orders_blocks},
    {&kernel::add_in_turn_record, add_in_turn_text}};

}  // namespace

extern const HookFamily block_order_hooks;
constinit const HookFamily block_order_hooks{block_order_device_text, block_order_words, block_order_table};

}  // namespace lathe::cuda
