#pragma once

#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// Returns bindings of the program's unknown dims that pass its run-time checks: small sizes, and sizes that need
/// several blocks plus a remainder. Returns one empty binding if all sizes are known. Returns fewer, or none, if
/// adjusting one dim at a time cannot satisfy the checks.
std::vector<DimBindings> sample_sizes(const Program& program);

}  // namespace lathe
