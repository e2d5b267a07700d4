#pragma once

#include <memory>

#include "codegen/llvm/jit.h"
#include "ir/hardware/task_sizes.h"
#include "runtime/program_runner.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

struct CpuRunnerOptions {
  int threads = 1;
  bool poison = false;                         ///< see CompileOptions::poison
  DimBindings reserve = {};                    ///< see CompileOptions::reserve
  TaskSizes tasks = {};                        ///< of the machine
  const std::vector<bool>* skipped = nullptr;  ///< launches that runs leave out if they are set when the run starts
  Ranks* ranks = nullptr;                      ///< that exchange with this process; null: exchanges are left out
};

/// Runs compiled kernels on a pool of threads; results are the same bits for any number of them. A binding of the
/// dims is prepared once, and nothing is allocated in runs that have the dims of the run before; where temporaries
/// fit the plan of an earlier binding, nothing is planned anew. The program, `skipped` and `ranks` must outlive it.
std::unique_ptr<ProgramRunner> make_cpu_runner(const Program& program, codegen::CompiledKernels kernels,
                                               const CpuRunnerOptions& options);

}  // namespace lathe
