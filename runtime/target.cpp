#include "runtime/target.h"

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
  if (!name.starts_with(start)) return {.cpu = codegen::TargetCpu::named(name)};
  Target target{.kind = Kind::cuda};
  target.arch = lathe::cuda::Arch::named(name.substr(start.size()));
  return target;
}

}  // namespace lathe
