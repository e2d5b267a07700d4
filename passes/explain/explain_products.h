#pragma once

#include <string>

#include "passes/program/program.h"

namespace lathe {

/// Describes the multiplier of each matmul outside of attention, such as warpgroups, AMX tiles or fma, and why it
/// does not use a faster path of the machine. Prints one line per kernel, with the number of its runs.
std::string explain_products(const Program& program, bool of_gpu);

}  // namespace lathe
