#pragma once

#include "passes/program/program.h"

namespace lathe {

/// Returns the number of launches at the start of the program that write kept buffers. They depend on parameters
/// alone, which the program does not write. A run executes such a launch only if one of its parameters has changed
/// since the last time.
int kept_launches(const Program& program);

/// Moves the launches that write kept buffers to the start of the program, in order. Launches that write the same
/// copy, because layers share a parameter, become one, and so do their buffers.
void gather_kept_launches(Program& program);

}  // namespace lathe
