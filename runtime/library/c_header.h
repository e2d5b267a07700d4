#pragma once

#include <string>

#include "runtime/library/library_plan.h"

namespace lathe {

/// Returns the header of a library, in C99 and C++. It includes no other headers than those of C for sizes and
/// integers.
std::string c_header(const LibraryPlan& plan);

}  // namespace lathe
