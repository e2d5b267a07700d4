#pragma once

#include "codegen/llvm/library/library_code.h"
#include "runtime/library/library_machine.h"
#include "runtime/library/library_messages.h"
#include "runtime/library/library_plan.h"
#include "runtime/library/library_weights.h"

namespace lathe {

/// Returns a size as a polynomial of the library's dims.
codegen::LibrarySize library_size(const Dim& size, const LibraryPlan& plan);

/// The parts of a level that all functions share, and to which their code is added.
struct LevelCode {
  const LibraryMachine& machine;
  LibraryWeights& weights;
  LibraryMessages& messages;  ///< of run-time checks
  LibraryKernels& kernels;
};

/// Returns the code of a function for one target: buffers with their places in memory, launches, loops and groups.
/// Throws UserError [dim_overflow] if a size does not fit 63 bits at the largest dims.
codegen::LibraryProgram program_code(const LibraryPlan& plan, const LibraryFunction& function, std::size_t target,
                                     const LevelCode& level);

}  // namespace lathe
