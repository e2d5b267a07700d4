#include "codegen/cuda/machine/hooks.h"

#include "ir/support/error.h"

namespace lathe::cuda {

extern const MachineFamily copy_hooks, mma_hooks, wgmma_hooks, exchange_hooks, pair_hooks;

std::span<const MachineFamily> machine_families() {
  static const MachineFamily all[] = {copy_hooks, mma_hooks, wgmma_hooks, exchange_hooks, pair_hooks};
  return all;
}

const MachineHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in) {
  for (const MachineFamily& family : machine_families())
    for (const MachineHook& hook : family.hooks)
      if (hook.record == kernel::record_of(in)) return hook;
  throw InternalError(
      fmt::format("kernel {}: {} in a kernel for the GPU, whose code generator has no hook for it  [machine_hook]",
                  kernel.name, kernel::name_of(in)));
}

}  // namespace lathe::cuda
