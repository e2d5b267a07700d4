#include "codegen/cuda/intrinsics/hooks.h"

#include "ir/support/error.h"

namespace lathe::cuda {

extern const HookFamily copy_hooks, mma_hooks, wgmma_hooks, pipeline_hooks, box_hooks, exchange_hooks, pair_hooks,
    fast_math_hooks, awaited_hooks, grid_hooks, block_order_hooks;

std::span<const HookFamily> hook_families() {
  static const HookFamily all[] = {copy_hooks,    mma_hooks,      wgmma_hooks,      pipeline_hooks,
                                   box_hooks,     exchange_hooks, pair_hooks,       fast_math_hooks,
                                   awaited_hooks, grid_hooks,     block_order_hooks};
  return all;
}

namespace {

[[noreturn]] void no_hook(const kernel::Kernel& kernel, std::string_view name) {
  throw InternalError(
      fmt::format("kernel {}: {} in a kernel for the GPU, whose code generator has no hook for it  [machine_hook]",
                  kernel.name, name));
}

}  // namespace

const IntrinsicHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in) {
  for (const HookFamily& family : hook_families())
    for (const IntrinsicHook& hook : family.hooks)
      if (hook.record == kernel::record_of(in)) return hook;
  no_hook(kernel, kernel::name_of(in));
}

const RegionHook& hook_of(const kernel::Kernel& kernel, const kernel::IntrinsicRegion& region) {
  for (const HookFamily& family : hook_families())
    for (const RegionHook& hook : family.regions)
      if (hook.record == region.record) return hook;
  no_hook(kernel, region.record->name);
}

}  // namespace lathe::cuda
