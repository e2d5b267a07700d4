#include "runtime/target.h"

#include <fmt/core.h>

#include <array>

#include "ir/support/error.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/cuda/cuda_backend.h"

namespace lathe {

namespace {

/// The backends that names are looked up in.
std::array<std::shared_ptr<const Backend>, 2> backends() { return {cpu_backend(), cuda::cuda_backend()}; }

}  // namespace

Target Target::host() { return {cpu_backend(), "host"}; }

Target Target::cuda(std::string_view arch) { return named(arch.empty() ? "cuda" : fmt::format("cuda:{}", arch)); }

Target Target::named(std::string_view name) {
  std::string known;
  for (const auto& backend : backends()) {
    if (backend->knows(name)) {
      backend->check(name);
      return {backend, std::string(name)};
    }
    known += (known.empty() ? "" : ", ") + backend->names();
  }
  throw UserError(fmt::format("there is no target named \"{}\"", name.substr(0, name.find(','))), "unknown_target",
                  fmt::format("give one of {}", known));
}

Target Target::on_device(const std::shared_ptr<Ranks>& ranks,
                         const std::vector<std::filesystem::path>& folders) const {
  const auto bound = backend->bind(ranks, folders);
  return {bound ? bound : backend, name};
}

Machine machine_of(const Target& target) { return target.backend->machine(target.name); }

}  // namespace lathe
