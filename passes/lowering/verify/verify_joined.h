#pragma once

#include <optional>
#include <string>

#include "passes/program/program.h"

namespace lathe {

/// Returns the first violation of the rule for joined launches, if any: the phases of the kernel are the launches,
/// with their kernels and arguments, and every run executes these once.
std::optional<std::string> find_joined_fault(const Program& program);

}  // namespace lathe
