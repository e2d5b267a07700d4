#pragma once

#include "runtime/library/library_plan.h"

namespace lathe {

/// Generates the code of a library for CPUs: objects and archive.
EmittedLibrary emit_cpu_library(const LibraryPlan& plan);

}  // namespace lathe
