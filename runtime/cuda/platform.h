#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"

namespace lathe::cuda {

class DeviceGroups;  // runtime/cuda/ranks/device_groups.h

/// Driver, device and compiler of a GPU program.
struct Platform {
  std::shared_ptr<Driver> driver;
  int device = 0;
  /// Communicator with other ranks' GPUs; null for a single GPU.
  std::shared_ptr<DeviceGroups> groups = nullptr;
  /// Compiles kernels on up to `threads` threads.
  using Compile = std::function<std::vector<CompiledKernel>(std::span<const kernel::Kernel>, const Arch&,
                                                            ObjectStore* store, Indices, int threads)>;
  Compile compile;
};

/// Returns this machine's driver and NVRTC. NVRTC is searched for in `cuda_folders` first. Throws UserError
/// [driver_missing], [nvrtc_missing] with what is missing, which may be both, and how to install it; [no_device] if
/// the GPU does not exist.
std::shared_ptr<const Platform> local_platform(const std::vector<std::filesystem::path>& cuda_folders = {},
                                               int device = 0);

/// Returns the architecture to compile for: `asked`, or the device's own with all of its features. Throws UserError
/// [arch_mismatch] if the device cannot run `asked`.
Arch arch_of_device(const Platform& platform, const std::optional<Arch>& asked);

}  // namespace lathe::cuda
