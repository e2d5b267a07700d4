#pragma once

#include <string>

#include "passes/memory/memory_plan.h"

namespace lathe::tools {

/// Returns a picture of a memory plan: launches from left to right, bytes of the arena upwards, and one rectangle per
/// value from the launch that writes it first to the one that reads it last. Marks the launch at which most bytes are
/// live. A rectangle's <title> has the value, its bytes, its launches and its source line; a strip below has the
/// launches. The result is a self-contained SVG of 1200 x 760.
std::string memory_svg(const Program& program, const MemoryPlan& plan);

}  // namespace lathe::tools
