#include "tests/gpu/gpu_device.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cuda/platform.h"
#include "tools/environment.h"

namespace lathe::test {

namespace {

ObjectStore* kept_kernels() {
  const std::filesystem::path folder = tools::cache_folder();
  if (folder.empty()) return nullptr;
  static DiskCache cache(folder);
  return &cache;
}

}  // namespace

std::optional<CompileOptions> gpu_options() {
  try {
    return CompileOptions{.target = Target::cuda(), .cache = kept_kernels(), .gpu = cuda::local_platform()};
  } catch (const UserError& error) {
    fmt::print("SKIP: {}\n", error.what());
    return std::nullopt;
  }
}

}  // namespace lathe::test
