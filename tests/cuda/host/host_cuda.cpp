#include "tests/cuda/host/host_cuda.h"

#include <dlfcn.h>

#include <fmt/core.h>

#include "codegen/cuda/index/index_width.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "tests/cuda/host/host_build.h"
#include "tests/cuda/host/host_flags.h"
#include "tests/cuda/host/shim_maps.h"

namespace lathe::test {

std::optional<HostCuda> HostCuda::build(std::span<const kernel::Kernel> kernels, const std::string& prelude) {
#ifndef __x86_64__
  fmt::print("SKIP: CUDA text on the host wants an x86-64 processor\n");
  return std::nullopt;
#endif
  if (!has_compiler()) return std::nullopt;
  const ScratchFolder scratch;
  const HostText text(kernels);
  build_text(scratch, text, prelude, LATHE_HOST_BUILD("kernels.cpp", "kernels.so"));
  const std::string library = scratch / "kernels.so";
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw InternalError(fmt::format("the kernels do not load: {}", dlerror()));
  HostCuda result;
  for (const auto& [key, name] : text.entries)
    result.entries_[key] = reinterpret_cast<Entry>(dlsym(handle, name.c_str()));
  return result;
}

std::int64_t HostCuda::run(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                           std::span<const std::int64_t> dims, std::uint64_t seed) const {
  const auto entry = entries_.find(kernel::canonical_text(kernel));
  LATHE_ASSERT(entry != entries_.end() && entry->second);
  LATHE_ASSERT(cuda::int32_suffices(kernel, gpu_info("sm_80"), dims));
  std::vector<void*> pointers;
  for (const kernel::BoundBuffer& buffer : buffers) pointers.push_back(buffer.data);
  const auto grid = host_grid(kernel, dims, seed);
  const cuda::Mapping mapping = cuda::mapping_of(kernel, gpu_info("sm_80"));
  const long long blocks[] = {grid[0], grid[1], grid[2]};
  unsigned long long status[2] = {};  // and the word of a grid barrier
  const auto maps = shim_maps(kernel, buffers, dims);
  if (entry->second(pointers.data(), dims.data(), maps.data(), blocks, mapping.threads.data(), seed, status) != 0)
    throw InternalError(
        fmt::format("kernel {}: threads of a block, or blocks, finish while others wait at a barrier", kernel.name));
  return static_cast<std::int64_t>(status[0]);
}

}  // namespace lathe::test
