#pragma once

#include <memory>
#include <span>

#include "runtime/cuda/platform.h"
#include "runtime/run/program_runner.h"

namespace lathe::cuda {

struct CudaRunnerOptions {
  int threads = 1;                             ///< number of threads that compile concurrently
  const std::vector<bool>* skipped = nullptr;  ///< launches that timed runs skip; read at their start
};

/// Returns a runner for a program of lower_gpu(). Parameters and states stay on the device between runs and are
/// copied back when the host reads them. State that depends on the dims (arena, arguments, the graph of all launches)
/// is created once for consecutive runs with equal dims. A run copies the inputs to the device, replays the graph and
/// copies the outputs back. `kernels` are those of the program, compiled for `arch` with 32-bit indices; those
/// without code, which run only as phases of others, are compiled if they are launched after all. For sizes that
/// exceed 32-bit indices, the affected kernels are recompiled with 64-bit indices; for sizes at which slices of loops
/// do not start at multiples of 16 bytes, without vector accesses to them. Timed runs skip the launches that are
/// `skipped` when they start. The program and `skipped` must outlive the runner.
std::unique_ptr<ProgramRunner> make_cuda_runner(const Program& program, std::span<const CompiledKernel> kernels,
                                                std::shared_ptr<const Platform> platform, const Arch& arch,
                                                const CudaRunnerOptions& options);

}  // namespace lathe::cuda
