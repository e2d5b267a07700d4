#pragma once

#include <string>

#include "passes/program/program.h"

namespace lathe {

/// Describes the kernels whose phases are launches: the launches, the kernels that they share, the grid barriers, and
/// the bytes of weights that these prefetch. Empty if no launches are joined.
std::string explain_joined(const Program& program);

}  // namespace lathe
