#include "runtime/cuda/device.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"

namespace lathe::cuda {

Context::~Context() {
  try {
    driver_.release_context(device_);
  } catch (const UserError&) {
    // The device is lost, so nothing can be freed.
  }
}

CapturedGraph::CapturedGraph(Driver& driver, const Stream& stream, const std::function<void()>& put)
    : driver_(driver) {
  driver.begin_capture(stream.handle());
  try {
    put();
  } catch (...) {
    try {
      driver.destroy_graph(driver.end_capture(stream.handle()));
    } catch (const UserError&) {
      // The exception of put() is more specific.
    }
    throw;
  }
  handle_ = driver.end_capture(stream.handle());
}

std::vector<std::optional<Driver::Tensor>> tensors_of(const kernel::Kernel& kernel,
                                                      std::span<const Driver::Pointer> buffers,
                                                      std::span<const std::int64_t> dims) {
  std::vector<std::optional<Driver::Tensor>> tensors;
  for (const MappedTensor& map : mapped_tensors(kernel, dims)) {
    const auto buffer = static_cast<std::size_t>(map.buffer);
    const DType dtype = kernel.buffers[buffer].dtype;
    const auto bytes = [&](std::int64_t n) { return static_cast<std::uint64_t>(n) * size_in_bytes(dtype); };
    auto& tensor = tensors.emplace_back(Driver::Tensor{dtype, buffers[buffer] + bytes(map.offset), {}, {}, {}});
    tensor->sizes.assign(map.sizes.begin(), map.sizes.end());
    for (const std::int64_t stride : map.strides) tensor->strides.push_back(bytes(stride));
    tensor->box.assign(map.box.begin(), map.box.end());
    if (std::find(map.sizes.begin(), map.sizes.end(), 0) != map.sizes.end()) tensor.reset();
  }
  return tensors;
}

LoadedKernel::LoadedKernel(Driver& driver, const kernel::Kernel& kernel, const GpuInfo& gpu,
                           const CompiledKernel& code)
    : driver_(&driver), kernel_(kernel), gpu_(&gpu), module_(driver.load_module(code.code)) {
  const Mapping mapping = mapping_of(kernel, gpu);
  threads_ = mapping.threads;
  try {
    function_ = driver.find_function(module_, code.symbol);
    if (mapping.is_resident || mapping.shared_bytes > gpu.static_shared_bytes) dynamic_shared_ = mapping.shared_bytes;
    if (mapping.shared_bytes > gpu.static_shared_bytes) driver.allow_shared_memory(function_, dynamic_shared_);
    if (mapping.is_resident)
      resident_blocks_ = driver.most_resident_blocks(function_, mapping.block_size(), dynamic_shared_);
  } catch (...) {
    driver.unload_module(module_);
    throw;
  }
}

LoadedKernel::~LoadedKernel() {
  if (module_) driver_->unload_module(module_);
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : driver_(other.driver_),
      kernel_(std::move(other.kernel_)),
      gpu_(other.gpu_),
      module_(std::exchange(other.module_, nullptr)),
      function_(other.function_),
      threads_(other.threads_),
      dynamic_shared_(other.dynamic_shared_),
      resident_blocks_(other.resident_blocks_) {}

LoadedKernel& LoadedKernel::operator=(LoadedKernel&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(kernel_, other.kernel_);
  std::swap(gpu_, other.gpu_);
  std::swap(module_, other.module_);
  std::swap(function_, other.function_);
  std::swap(threads_, other.threads_);
  std::swap(dynamic_shared_, other.dynamic_shared_);
  std::swap(resident_blocks_, other.resident_blocks_);
  return *this;
}

void LoadedKernel::launch(std::span<const Driver::Pointer> buffers, std::span<const std::int64_t> dims,
                          Driver::Pointer status, const Stream& stream) const {
  if (buffers.size() != static_cast<std::size_t>(kernel_.parameter_count()) || dims.size() != kernel_.dims.size())
    throw InternalError(
        fmt::format("kernel {}: {} buffers and {} dims are bound", kernel_.name, buffers.size(), dims.size()));
  std::vector<std::uint64_t> values(buffers.begin(), buffers.end());
  for (const std::int64_t dim : dims) values.push_back(static_cast<std::uint64_t>(dim));
  values.push_back(status);
  std::vector<void*> arguments;
  for (std::uint64_t& value : values) arguments.push_back(&value);
  try {
    std::vector<Driver::TensorMap> maps;
    for (const auto& tensor : tensors_of(kernel_, buffers, dims))
      maps.push_back(tensor ? driver_->encode(*tensor) : Driver::TensorMap{});
    auto grid = grid_of(kernel_, *gpu_, dims);
    if (resident_blocks_ > 0) grid[0] = std::min(grid[0], resident_blocks_);
    driver_->launch({.function = function_,
                     .grid = grid,
                     .block = threads_,
                     .shared_bytes = dynamic_shared_,
                     .is_cooperative = resident_blocks_ > 0,
                     .stream = stream.handle(),
                     .arguments = arguments,
                     .maps = maps});
  } catch (const UserError& error) {
    throw error.with_note(
        fmt::format("  in kernel {}{}", kernel_.name, kernel_.notes.empty() ? "" : ", from " + kernel_.notes.back()));
  }
}

}  // namespace lathe::cuda
