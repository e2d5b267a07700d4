#pragma once

#include <memory>

#include "codegen/llvm/jit.h"
#include "runtime/cpu/task_sizes.h"
#include "runtime/ranks/ranks.h"
#include "runtime/run/program_runner.h"

namespace lathe {

struct CpuRunnerOptions {
  int threads = 1;
  bool own_threads = false;  ///< see CompileOptions::own_threads
  bool poison = false;       ///< see CompileOptions::poison
  DimBindings reserve = {};  ///< see CompileOptions::reserve
  TaskSizes tasks = {};
  const std::vector<bool>* skipped = nullptr;  ///< by launch: runs skip it; read at the start of each run
  Ranks* ranks = nullptr;                      ///< ranks of the collectives; null: collectives are skipped
};

/// Returns a runner of compiled kernels on a thread pool. Results are bit-identical for any number of threads. A run
/// with the dims of the previous run allocates nothing. The memory plan of earlier dims is reused if all temporaries
/// fit it. The program, `skipped` and `ranks` must outlive the runner.
std::unique_ptr<ProgramRunner> make_cpu_runner(const Program& program, codegen::CompiledKernels kernels,
                                               const CpuRunnerOptions& options);

}  // namespace lathe
