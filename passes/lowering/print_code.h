#pragma once

#include <string>

#include "passes/lowering/machine.h"

namespace lathe {

/// Prints all kernels in the form of a code stage.
std::string print_code(const Program& program, const CodeStage& stage);

}  // namespace lathe
