#pragma once

#include "passes/compile_pipeline.h"
#include "runtime/target.h"

namespace lathe {

/// What compiles for a target. A GPU whose architecture is not told counts as the oldest that is compiled for.
Machine machine_of(const Target& target);

}  // namespace lathe
