#pragma once

#include <string>

#include "passes/program/program.h"

namespace lathe {

/// What multiplies in each product of a program that is no part of an attention, such as warpgroups, AMX tiles or
/// fma, and what keeps it from a faster way that the machine has; a line a kernel, with how often it runs.
std::string explain_products(const Program& program, bool of_gpu);

}  // namespace lathe
