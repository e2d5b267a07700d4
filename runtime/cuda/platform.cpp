#include "runtime/cuda/platform.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::cuda {

std::shared_ptr<const Platform> local_platform(const std::vector<std::filesystem::path>& cuda_folders, int device) {
  std::shared_ptr<Nvrtc> nvrtc;
  std::optional<UserError> no_nvrtc;
  try {
    nvrtc = std::make_shared<Nvrtc>(cuda_folders);
  } catch (const UserError& error) {
    no_nvrtc = error;
  }
  auto platform = std::make_shared<Platform>();
  platform->device = device;
  try {
    platform->driver = load_driver();
  } catch (const UserError& error) {
    throw no_nvrtc ? error.with_note(fmt::format("  and {}", no_nvrtc->what())) : error;
  }
  if (no_nvrtc) throw UserError(*no_nvrtc);
  if (const int count = platform->driver->device_count(); device >= count)
    throw UserError(fmt::format("there is no GPU number {}: the driver shows {}", device, count), "no_device");
  platform->compile = [nvrtc](std::span<const kernel::Kernel> kernels, const Arch& arch, ObjectStore* store,
                              Indices indices, int threads) {
    return compile_kernels(*nvrtc, kernels, arch, Output::cubin, store, threads, indices);
  };
  return platform;
}

Arch arch_of_device(const Platform& platform, const std::optional<Arch>& asked) {
  const int capability = platform.driver->compute_capability(platform.device);
  // From Hopper on, the suffix "a" enables features of exactly this chip.
  Arch own{.number = capability, .suffix = capability >= 90 ? "a" : ""};
  if (!asked) return own;
  // A cubin runs on chips of the same major version that are not older. With chip-specific features it runs only on
  // that chip.
  const bool runs = asked->suffix == "a" ? asked->number == capability
                                         : asked->number / 10 == capability / 10 && asked->number <= capability;
  if (!runs)
    throw UserError(fmt::format("{} does not run {}: the GPU is {}", platform.driver->device_name(platform.device),
                                asked->name(), own.name()),
                    "arch_mismatch",
                    fmt::format("compile for cuda:{}, or for cuda, which takes the GPU's own", own.name()));
  return *asked;
}

}  // namespace lathe::cuda
