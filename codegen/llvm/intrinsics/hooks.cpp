#include "codegen/llvm/intrinsics/hooks.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::codegen {

extern const std::span<const IntrinsicHook> tile_hooks, pair_hooks;

std::span<const std::span<const IntrinsicHook>> intrinsic_hooks() {
  static const std::span<const IntrinsicHook> all[] = {tile_hooks, pair_hooks};
  return all;
}

const IntrinsicHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in) {
  for (const auto& family : intrinsic_hooks())
    for (const IntrinsicHook& hook : family)
      if (hook.record == kernel::record_of(in)) return hook;
  throw InternalError(
      fmt::format("kernel {}: {} in a kernel for the CPU, whose code generator has no hook for it  [machine_hook]",
                  kernel.name, kernel::name_of(in)));
}

std::vector<const IntrinsicHook*> hooks_of(const kernel::Kernel& kernel, const TargetCpu& target) {
  std::vector<const IntrinsicHook*> found;
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const kernel::Instruction* in = kernel::intrinsic_operation(kernel, s);
    if (!in) return;
    const IntrinsicHook& hook = hook_of(kernel, *in);
    if (std::find(found.begin(), found.end(), &hook) != found.end()) return;
    if (const std::string_view what = hook.lacks ? hook.lacks(target) : ""; !what.empty())
      throw InternalError(fmt::format("kernel {}: a {} for {}, which has no {}  [machine_hook]", kernel.name,
                                      hook.record->name, target.cpu, what));
    found.push_back(&hook);
  });
  return found;
}

}  // namespace lathe::codegen
