#pragma once

#include <string>

#include "passes/lowering/machine.h"

namespace lathe {

/// Prints a program in the form of a code stage. `sizes` are those of CodeStage::print_program.
std::string print_code(const Program& program, const CodeStage& stage, const DimBindings& sizes);

}  // namespace lathe
