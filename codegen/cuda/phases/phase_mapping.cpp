#include "codegen/cuda/phases/phase_mapping.h"

#include <algorithm>

#include <fmt/core.h>

#include "codegen/cuda/names.h"
#include "ir/support/error.h"

namespace lathe::cuda {

using kernel::Kernel;
using kernel::warp_threads;

namespace {

constexpr int most_named_barriers = 15;  // of a block, besides that of __syncthreads
/// Threads of a multiprocessor that ptxas has to leave registers for: 128 each. GEMVs of 8 rows need that many, and
/// loads of that many threads in flight suffice for the bandwidth of memory.
constexpr int resident_threads = 512;

int held_threads(const Mapping& mapping) {
  return (mapping.block_size() + warp_threads - 1) / warp_threads * warp_threads;
}

}  // namespace

PhaseMapping phase_mapping(const Kernel& phase, const GpuInfo& gpu, int block_threads) {
  const Mapping mapping = mapping_of(phase, gpu);
  PhaseMapping made{.threads = mapping.threads,
                    .held = held_threads(mapping),
                    .shared_bytes = (mapping.shared_bytes + 15) / 16 * 16};
  made.at_once = block_threads / made.held;
  if (made.held > warp_threads && made.held < block_threads)
    made.at_once = std::min(made.at_once, most_named_barriers);
  if (made.shared_bytes > 0)
    made.at_once = std::clamp(static_cast<int>(gpu.static_shared_bytes / made.shared_bytes), 1, made.at_once);
  return made;
}

Mapping mapping_of_phases(const Kernel& kernel, const GpuInfo& gpu) {
  Mapping joined;
  for (const auto& phase : kernel.phase_kernels) {
    const Mapping mapping = mapping_of(*phase, gpu);
    if (mapping.shared_alignment > joined.shared_alignment)
      throw InternalError(
          fmt::format("kernel {}: the shared memory of {} starts at a multiple of {} bytes  [phase_block]",
                      kernel.name, phase->name, mapping.shared_alignment));
    joined.threads[0] = std::max(joined.threads[0], held_threads(mapping));
  }
  for (const auto& phase : kernel.phase_kernels) {
    const PhaseMapping mapping = phase_mapping(*phase, gpu, joined.threads[0]);
    joined.shared_bytes = std::max(joined.shared_bytes, mapping.at_once * mapping.shared_bytes);
  }
  joined.blocks_at_once = std::max(1, resident_threads / joined.threads[0]);
  joined.is_resident = true;
  return joined;
}

std::int64_t most_blocks_of_phases(const Kernel& kernel, const GpuInfo& gpu, std::span<const std::int64_t> dims) {
  const int threads = mapping_of_phases(kernel, gpu).threads[0];
  std::int64_t most = 1;
  for (const kernel::KernelPhase& phase : kernel::phases_of(kernel)) {
    const Kernel& run = *kernel.phase_kernels[phase.kernel];
    const std::vector<std::int64_t> own = phase.dims_given(
        kernel, [&](std::int64_t dim) { return dims[static_cast<std::size_t>(dim)]; },
        [](std::int64_t n) { return n; });
    const auto grid = grid_of(run, gpu, own);
    const int at_once = phase_mapping(run, gpu, threads).at_once;
    most = std::max(most, (grid[0] * grid[1] * grid[2] + at_once - 1) / at_once);
  }
  return most;
}

std::string phase_symbol(const Kernel& kernel, const kernel::KernelPhase& phase) {
  const std::string awaited = phase.awaited ? fmt::format("_awaits_{:x}", phase.awaited) : "";
  return identifier(fmt::format("{}_{}_{}{}", kernel.name, phase.kernel,
                                kernel.phase_kernels[static_cast<std::size_t>(phase.kernel)]->name, awaited));
}

}  // namespace lathe::cuda
