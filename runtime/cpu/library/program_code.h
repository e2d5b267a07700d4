#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/llvm/library/library_code.h"
#include "runtime/cpu/library/library_messages.h"
#include "runtime/library/library_plan.h"

namespace lathe {

/// Returns a size as a polynomial of the library's dims.
codegen::LibrarySize library_size(const Dim& size, const LibraryPlan& plan);

/// Returns the code of a function for one target: buffers with their places in memory, launches, loops and groups.
/// `kernels` receives the kernels that it does not have yet; `kernel_of` finds them by canonical text. Messages of
/// run-time checks are added to `messages`. `offsets` are those of embedded parameters in the library's weights.
/// Throws UserError [dim_overflow] if a size does not fit 63 bits at the largest dims.
codegen::LibraryProgram program_code(const LibraryPlan& plan, const LibraryFunction& function, std::size_t target,
                                     const std::map<std::string, std::int64_t>& offsets, LibraryMessages& messages,
                                     std::vector<kernel::Kernel>& kernels, std::map<std::string, int>& kernel_of);

}  // namespace lathe
