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

/// What a program for a GPU is compiled and run by.
struct Platform {
  std::shared_ptr<Driver> driver;
  int device = 0;
  /// With what it exchanges memory where it is one of several, each the GPU of a rank; null: it is alone.
  std::shared_ptr<DeviceGroups> groups = nullptr;
  /// Compiles kernels on at most `threads` threads at once.
  using Compile = std::function<std::vector<CompiledKernel>(std::span<const kernel::Kernel>, const Arch&,
                                                            ObjectStore* store, Indices, int threads)>;
  Compile compile;
};

/// This machine's driver and NVRTC, the latter sought in these folders first. UserError [driver_missing],
/// [nvrtc_missing]: what is missing and how to get it, both where both are; [no_device] where there is no such GPU.
std::shared_ptr<const Platform> local_platform(const std::vector<std::filesystem::path>& cuda_folders = {},
                                               int device = 0);

/// The architecture to compile for: the one asked for, or, with all that the chip has, the device's own. UserError
/// [arch_mismatch] where the device does not run what is asked for.
Arch arch_of_device(const Platform& platform, const std::optional<Arch>& asked);

}  // namespace lathe::cuda
