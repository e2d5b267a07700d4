#pragma once

#include "runtime/library/library_plan.h"

namespace lathe {

/// Generates the code of a library for CPUs: objects and archive.
EmittedLibrary emit_cpu_library(const LibraryPlan& plan);

/// Returns the LLVM IR of the functions that run a library's graphs on its first target.
std::string cpu_driver_text(const LibraryPlan& plan);

}  // namespace lathe
