#include "runtime/target.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe {

Target Target::cuda(std::string_view arch) {
  Target target{.kind = Kind::cuda};
  if (!arch.empty()) target.arch = lathe::cuda::Arch::named(arch);
  return target;
}

Target Target::named(std::string_view name) {
  const std::string_view start = "cuda:";
  if (name == "host") return host();
  if (name == "cuda") return cuda();
  if (!name.starts_with(start)) {
    const std::string_view cpu = name.substr(0, name.find(','));
    const auto cpus = codegen::TargetCpu::names();
    if (std::ranges::find(cpus, cpu) == cpus.end())
      throw UserError(fmt::format("there is no target named \"{}\"", cpu), "unknown_target",
                      fmt::format("give one of {}, cuda, or a GPU architecture such as cuda:sm_90a", list_of(cpus)));
    return {.cpu = codegen::TargetCpu::named(name)};
  }
  Target target{.kind = Kind::cuda};
  target.arch = lathe::cuda::Arch::named(name.substr(start.size()));
  return target;
}

}  // namespace lathe
