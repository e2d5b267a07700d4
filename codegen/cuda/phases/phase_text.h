#pragma once

#include <span>
#include <string>

#include "codegen/cuda/phases/phase_mapping.h"
#include "ir/kernel/phases.h"

namespace lathe::cuda {

/// Returns the CUDA C++ type and arguments of the object `phase` that hands out the blocks of a phase:
/// "PhaseBlock<256, 1, 1, 256, 2, 512, 4096, 1> phase(first, 9, 1, 1)". The number of blocks follows from the dims,
/// whose names in the text are given. Throws InternalError [block_bounds] like grid_of().
std::string phase_block_text(const kernel::Kernel& phase, const PhaseMapping& mapping, int block_threads,
                             std::span<const std::string> dims);

/// Returns the parameters of a kernel, or of the function that runs a phase of it: buffers, dims, the status word and
/// tensor maps, by their names in the text.
std::string parameter_list(const kernel::Kernel& kernel, const kernel::KernelPhase* phase,
                           std::span<const std::string> buffers, std::span<const std::string> dims,
                           std::span<const std::string> maps);

}  // namespace lathe::cuda
