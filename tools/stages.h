#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/compile_pipeline.h"
#include "runtime/target.h"

namespace lathe::tools {

/// How a graph that is shown at a stage is compiled.
struct StageOptions {
  Target target = Target::host();
  LowerOptions lower = {};
  DimBindings dims = {};  ///< for "memory-plan": a size of every unknown dim
};

/// What follows compile_pipeline() for a target, in order: lowering_stages(), then "llvm" (LLVM IR as it goes to code
/// generation) and "asm" of a CPU, "cuda" (CUDA C++) of a GPU.
std::vector<Stage> stages_after_passes(const Target& target);

/// What a graph that has gone through compile_pipeline() is after lower_prepared() at one of these stages; of
/// "rematerialize" the IR text. UserError [dim_option] for a dim that "memory-plan" needs and that has no size.
std::string stage_text(const Lowered& lowered, std::string_view stage, const StageOptions& options);

}  // namespace lathe::tools
