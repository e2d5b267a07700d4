#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "codegen/cuda/mapping.h"
#include "ir/kernel/phases.h"

namespace lathe::cuda {

/// How the blocks of a phase run in the blocks of the grid.
struct PhaseMapping {
  std::array<int, 3> threads = {1, 1, 1};  ///< of a block of the phase
  int held = 32;                           ///< threads that such a block takes: whole warps
  int at_once = 1;                         ///< blocks of the phase that a block of the grid runs at a time
  std::int64_t shared_bytes = 0;           ///< of a block of the phase
};

/// Returns the mapping of a kernel of phases: a block has as many threads as the largest block of a phase. Throws
/// InternalError [phase_block] if the tiles of a phase need another alignment of shared memory.
Mapping mapping_of_phases(const kernel::Kernel& kernel, const GpuInfo& gpu);
PhaseMapping phase_mapping(const kernel::Kernel& phase, const GpuInfo& gpu, int block_threads);

/// Returns the number of blocks of the grid that the phases of a launch can use.
std::int64_t most_blocks_of_phases(const kernel::Kernel& kernel, const GpuInfo& gpu,
                                   std::span<const std::int64_t> dims);

/// Returns the name of the function that runs the blocks of a phase: one per kernel and set of awaited parameters.
std::string phase_symbol(const kernel::Kernel& kernel, const kernel::KernelPhase& phase);

}  // namespace lathe::cuda
