#include "codegen/cuda/phases/awaited_loads.h"

#include <algorithm>

#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

bool AwaitedLoads::is_awaited(const kernel::Instruction& in) const {
  return awaited_ && in.buffer != kernel::none && awaited_->awaits(static_cast<std::size_t>(in.buffer));
}

bool AwaitedLoads::is_pending(kernel::ValueId id) const {
  return std::ranges::find(loads_, id, &Load::value) != loads_.end();
}

bool AwaitedLoads::defers(const kernel::Statement& s) {
  const auto* compute = std::get_if<kernel::Compute>(&s.node);
  if (!compute || !kernel::is_cast(kernel::value(kernel_, compute->value))) return false;
  const bool is_of_load = is_pending(kernel::value(kernel_, compute->value).args[0]);
  if (is_of_load) add({compute->value, ""});
  return is_of_load;
}

bool AwaitedLoads::end_before(const kernel::Statement& s) const {
  const auto* compute = std::get_if<kernel::Compute>(&s.node);
  if (!compute) return true;
  const kernel::Instruction& in = kernel::value(kernel_, compute->value);
  return in.type == kernel::no_value || is_pending(in.mask) ||
         std::ranges::any_of(in.args, [&](kernel::ValueId id) { return is_pending(id); });
}

}  // namespace lathe::cuda
