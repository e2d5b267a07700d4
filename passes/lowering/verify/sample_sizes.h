#pragma once

#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// Bindings of the unknown sizes of a program that its run-time checks allow: small sizes, and such as take several
/// blocks and a remainder. One without names where all sizes are known; fewer, or none, where the checks are not met
/// by moving one size at a time.
std::vector<DimBindings> sample_sizes(const Program& program);

}  // namespace lathe
