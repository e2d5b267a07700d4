#pragma once

#include <memory>

#include "codegen/llvm/jit.h"
#include "runtime/program_runner.h"

namespace lathe {

/// Runs compiled kernels on a pool of threads; results are the same bits for any number of them. Runs leave out the
/// launches that are `skipped` when they start. With `poisons` outputs and temporaries hold NaNs and -1 until they
/// are written. The program, and `skipped`, must outlive it.
std::unique_ptr<ProgramRunner> make_cpu_runner(const Program& program, codegen::CompiledKernels kernels, int threads,
                                               const std::vector<bool>* skipped = nullptr, bool poisons = false);

}  // namespace lathe
