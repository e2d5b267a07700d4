#pragma once

#include <memory>

#include "codegen/llvm/jit.h"
#include "runtime/program_runner.h"

namespace lathe {

struct CpuRunnerOptions {
  int threads = 1;
  bool poison = false;                         ///< see CompileOptions::poison
  const std::vector<bool>* skipped = nullptr;  ///< launches that a run leaves out; read when it starts
};

/// Runs compiled kernels on a pool of threads; results are the same bits for any number of them. The program, and
/// `skipped`, must outlive it.
std::unique_ptr<ProgramRunner> make_cpu_runner(const Program& program, codegen::CompiledKernels kernels,
                                               const CpuRunnerOptions& options);

}  // namespace lathe
