#include "tests/gpu/gpu_device.h"

#include <algorithm>
#include <thread>

#include <fmt/core.h>

#include "ir/support/error.h"
#include "ir/support/share_jobs.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cuda/cuda_backend.h"
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

std::optional<CompileOptions> gpu_options(const gpu::GpuSizes& sizes) {
  try {
    return CompileOptions{.target = Target{cuda::cuda_backend(nullptr, sizes), "cuda"}.on_device(),
                          .cache = kept_kernels()};
  } catch (const UserError& error) {
    fmt::print("SKIP: {}\n", error.what());
    return std::nullopt;
  }
}

void on_all_cpus(std::size_t runs, const std::function<void(std::size_t i)>& run) {
  share_jobs(runs, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](const NextJob& next) {
    while (const auto i = next()) run(*i);
  });
}

}  // namespace lathe::test
