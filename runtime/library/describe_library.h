#pragma once

#include <string>

#include "runtime/library/library_plan.h"

namespace lathe {

/// Returns what the function `describe` of a library returns: JSON with its dims, tensors, functions and levels.
std::string describe_library(const LibraryPlan& plan);

/// Returns a text with the kernels of each target, one line each: the kernel, the launches that run it, and their ops
/// with source lines.
std::string list_sources(const LibraryPlan& plan);

}  // namespace lathe
