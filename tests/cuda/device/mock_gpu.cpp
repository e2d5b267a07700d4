#include "tests/cuda/device/mock_gpu.h"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/cuda/platform.h"
#include "runtime/cuda/ranks/device_groups.h"
#include "tests/cuda/host/shim_maps.h"

namespace lathe::test {

MockGpu::MockGpu(By by) : by_(by) {
  driver_->memory_bytes = std::uint64_t{1} << 30;
  driver_->on_launch = [this](const std::string& function, const cuda::Driver::Launch& l) { launch(function, l); };
  auto platform = std::make_shared<cuda::Platform>();
  platform->driver = driver_;
  platform->compile = [this](std::span<const kernel::Kernel> kernels, const cuda::Arch&, ObjectStore*,
                             cuda::Indices indices, int threads) {
    compiling_threads_.push_back(threads);
    return compile(kernels, indices);
  };
  platform_ = platform;
}

CompileOptions MockGpu::options() const { return {.target = {cuda::cuda_backend(platform_), "cuda"}}; }

CompileOptions MockGpu::options(const std::shared_ptr<Ranks>& ranks,
                                const std::shared_ptr<const cuda::Nccl>& nccl) const {
  auto platform = std::make_shared<cuda::Platform>(*platform_);
  platform->groups = std::make_shared<cuda::DeviceGroups>(ranks, nccl, driver_, platform->device);
  return {.target = {cuda::cuda_backend(platform), "cuda"}, .ranks = ranks};
}

/// Makes symbols unique, because kernels of several programs may have the same name.
std::vector<cuda::CompiledKernel> MockGpu::compile(std::span<const kernel::Kernel> kernels, cuda::Indices indices) {
  std::shared_ptr<const HostCuda> text;
  if (by_ == By::cuda_text) {
    auto host = HostCuda::build(kernels);
    has_compiler_ = host.has_value();
    if (host) text = std::make_shared<HostCuda>(std::move(*host));
  }
  std::vector<cuda::CompiledKernel> compiled;
  for (const kernel::Kernel& kernel : kernels) {
    const std::string symbol = fmt::format("{}_{}", cuda::symbol_of(kernel), kernels_.size());
    kernels_.emplace(symbol, Held{kernel, text, indices});
    compiled.push_back({.symbol = symbol, .code = "a cubin", .resources = {}});
  }
  return compiled;
}

void MockGpu::launch(const std::string& function, const cuda::Driver::Launch& launch) {
  const auto& [kernel, text, indices] = kernels_.at(function);
  const auto count = static_cast<std::size_t>(kernel.parameter_count());
  const auto word = [&](std::size_t i) { return *static_cast<const std::uint64_t*>(launch.arguments[i]); };
  LATHE_ASSERT(launch.arguments.size() == count + kernel.dims.size() + 1);
  LATHE_ASSERT(launch.is_cooperative == cuda::mapping_of(kernel, gpu_info("sm_80")).is_resident);
  std::vector<kernel::BoundBuffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = word(i) == 0 ? 0 : driver_->bytes_from(word(i));
    buffers.push_back({reinterpret_cast<void*>(word(i)),
                       static_cast<std::int64_t>(bytes / size_in_bytes(kernel.buffers[i].dtype))});
  }
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < kernel.dims.size(); ++i) dims.push_back(static_cast<std::int64_t>(word(count + i)));
  int64_launches_ += indices == cuda::Indices::int64;
  LATHE_ASSERT(indices == cuda::Indices::int64 || cuda::int32_suffices(kernel, gpu_info("sm_80"), dims));
  const auto maps = shim_maps(kernel, buffers, dims);
  LATHE_ASSERT(std::equal(maps.begin(), maps.end(), launch.maps.begin(), launch.maps.end(),
                          [](const auto& a, const auto& b) { return a.words == b.words; }));
  const std::int64_t code = text ? text->run(kernel, buffers, dims) : kernel::interpret(kernel, buffers, dims);
  auto* status = reinterpret_cast<std::int64_t*>(word(count + dims.size()));
  if (*status == 0) *status = code;
}

}  // namespace lathe::test
