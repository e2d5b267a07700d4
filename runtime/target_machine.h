#pragma once

#include "passes/compile_pipeline.h"
#include "runtime/target.h"

namespace lathe {

/// What compiles for a target. A GPU whose architecture is not told counts as the oldest that is compiled for.
Machine machine_of(const Target& target);

/// The passes of compile() for a target.
ir::Pipeline compile_pipeline(const Target& target, const LowerOptions& options = {});

/// compile_pipeline() and lower_prepared().
Lowered lower_for(const Target& target, const ir::Graph& graph, const LowerOptions& options = {});

}  // namespace lathe
