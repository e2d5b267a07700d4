#pragma once

#include <string>

#include "passes/lowering/program/program.h"

namespace lathe {

/// What runs each product of a program for GPUs that is no part of an attention: by warpgroups, by tensor cores or
/// by neither, and what keeps it from warpgroups where it might go by them; a line a kernel, with how often it runs.
std::string explain_products(const Program& program);

}  // namespace lathe
