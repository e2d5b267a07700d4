#pragma once

#include <memory>
#include <span>

#include "runtime/cuda/platform.h"
#include "runtime/program_runner.h"

namespace lathe::cuda {

struct CudaRunnerOptions {
  int threads = 1;                             ///< that compile at once
  const std::vector<bool>* skipped = nullptr;  ///< launches that timed runs leave out if they are set at their start
};

/// Runs a program of lower_gpu() on a GPU. Parameters and states stay on the device from run to run and come back
/// when the host asks for them. What depends on the dims (arena, arguments, the graph of all launches) is made once
/// for each binding that occurs in a row; a run copies the inputs there, replays the graph and copies the outputs
/// back. `kernels` are those of the program, compiled for `arch` with 32-bit indices; where a binding is too large
/// for these, the kernels in question are compiled once more, with 64-bit ones. Runs that are timed leave out the
/// launches that are `skipped` when they start. The program, and `skipped`, must outlive the runner.
std::unique_ptr<ProgramRunner> make_cuda_runner(const Program& program, std::span<const CompiledKernel> kernels,
                                                std::shared_ptr<const Platform> platform, const Arch& arch,
                                                const CudaRunnerOptions& options);

}  // namespace lathe::cuda
