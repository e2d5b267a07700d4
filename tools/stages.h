#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/compile_pipeline.h"
#include "runtime/target.h"

namespace lathe::tools {

/// What some stages need to know.
struct StageOptions {
  Target target = Target::host();
  DimBindings dims = {};  ///< for "memory-plan": a size of every unknown dim
};

/// What follows compile_pipeline() for a target, in order: lowering_stages(), then "llvm" (LLVM IR as it goes to code
/// generation) and "asm" of a CPU, "cuda" (CUDA C++) of a GPU.
std::vector<Stage> stages_after_passes(const Target& target);

/// What a lowered graph is at one of these stages but "rematerialize", which is its graph. UserError [dim_option] for
/// a dim that "memory-plan" needs and that has no size.
std::string stage_text(const Lowered& lowered, std::string_view stage, const StageOptions& options);

}  // namespace lathe::tools
