#pragma once

#include <string>

#include "runtime/library/library_plan.h"

namespace lathe::cuda {

/// Generates the code of a library for GPUs: header, objects and archive. Kernels are compiled by NVRTC. Throws
/// UserError [library_target] for a target without an architecture, [nvrtc_missing], and [grid_size] if a launch has
/// too many blocks at the largest sizes.
EmittedLibrary emit_cuda_library(const LibraryPlan& plan);

/// Returns the LLVM IR of the host functions that run a library's graphs on its first target. Compiles no kernels.
std::string cuda_driver_text(const LibraryPlan& plan);

}  // namespace lathe::cuda
