#include "runtime/cuda/library/gpu_library_machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "codegen/cuda/phases/phase_mapping.h"
#include "passes/lowering/verify/verify_loops.h"

namespace lathe::cuda {

using codegen::LibraryLaunch;

namespace {

const std::string long_indices = "indices of 64 bits\n";

/// Returns whether indices fit 32 bits in all calls.
bool fits_int32(const kernel::Kernel& kernel, const GpuInfo& gpu, const Launch& launch, const DimBindings& most) {
  std::vector<kernel::Range> dims;
  for (const Dim& dim : launch.dims) {
    const SizeBounds bounds = bounds_of(dim, most);
    dims.push_back({bounds.least, bounds.most});
  }
  return int32_suffices(kernel, gpu, dims);
}

/// Throws the error of a launch with too many blocks at the largest sizes.
void check_grid(const Program& program, const kernel::Kernel& kernel, const GpuInfo& gpu, const Launch& launch,
                const DimBindings& most) {
  if (is_skipped(program, launch, most)) return;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : launch.dims) dims.push_back(dim.evaluate(most));
  grid_of(kernel, gpu, dims);
}

}  // namespace

std::string GpuLibraryMachine::no_level_message(const std::string& prefix) const {
  return fmt::format("the GPU of the current context supports none of the architectures that {} was compiled for",
                     prefix);
}

std::vector<std::string> GpuLibraryMachine::own_messages() const {
  return {"the pointer to the functions of the CUDA driver is null",
          "the device memory for constants is null, or does not start at a multiple of 16 bytes",
          "a launch has more blocks of threads than CUDA allows: make the sizes smaller",
          "the GPU cannot run joined launches, which are cooperative: compile the library with --no-joined-launches"};
}

std::vector<codegen::LibraryGroup> GpuLibraryMachine::groups(const Program& program, const MemoryPlan&) const {
  std::vector<codegen::LibraryGroup> groups;
  int launches = static_cast<int>(program.launches.size());
  for (const JoinedLaunches& joined : program.joined) launches -= joined.end - joined.first - 1;
  for (int l = 0; l < launches; ++l) groups.push_back({l, l});
  return groups;
}

void GpuLibraryMachine::choose_kernels(const Program& program, const Launch& launch, std::size_t level,
                                       const DimBindings& most, LibraryKernels& kernels, LibraryLaunch& code) const {
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  const GpuInfo& gpu = gpu_info(archs_[level].name());
  check_grid(program, kernel, gpu, launch, most);
  const std::string options = fits_int32(kernel, gpu, launch, most) ? "" : long_indices;
  code.kernel = kernels.add(program, launch.kernel, options);
  kernel::Kernel unaligned = kernel;
  constexpr int assumed = 16;  // bytes; the prelude's load_aligned and store_aligned
  for (std::size_t p = 0; p < launch.buffers.size(); ++p) {
    if (starts_at_multiples(program, launch.buffers[p], assumed)) continue;
    unaligned.buffers[p].unaligned = true;
    for (int buffer = launch.buffers[p]; program.buffers[buffer].slice; buffer = program.buffers[buffer].slice->of)
      if (std::ranges::find(code.unaligned_slices, buffer) == code.unaligned_slices.end())
        code.unaligned_slices.push_back(buffer);
  }
  if (!code.unaligned_slices.empty()) code.unaligned_kernel = kernels.add(unaligned, options);
}

void GpuLibraryMachine::describe_kernels(const LibraryKernels& kernels, std::size_t number_of,
                                         codegen::LibraryLevel& level) const {
  const GpuInfo& gpu = gpu_info(archs_[number_of].name());
  for (std::size_t k = 0; k < kernels.all().size(); ++k) {
    const kernel::Kernel& kernel = kernels.all()[k];
    const Mapping mapping = mapping_of(kernel, gpu);
    const bool is_dynamic = mapping.is_resident || mapping.shared_bytes > gpu.static_shared_bytes;
    level.gpu->kernels.push_back({.symbol = symbol_of(kernel),
                                  .threads = mapping.threads,
                                  .most_blocks = gpu.most_blocks,
                                  .dynamic_shared_bytes = is_dynamic ? mapping.shared_bytes : 0,
                                  .has_long_indices = kernels.options(k) == long_indices});
    for (const auto& phase : kernel.phase_kernels)
      level.gpu->kernels.back().phase_blocks_at_once.push_back(
          phase_mapping(*phase, gpu, mapping.block_size()).at_once);
  }
}

}  // namespace lathe::cuda
