#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "passes/compile_pipeline.h"
#include "runtime/target.h"

namespace lathe::tools {

/// A stage of compilation as `opt --list` tells it.
struct ListedStage {
  /// Of the whole graph, where a program asks for it; for every target; for this one; what follows the passes.
  enum class Part : std::uint8_t { whole_graph, every_target, target, after_passes };
  Part part;
  std::string name, doc;
  std::string option = {};  ///< that brings it in; empty: it always runs
};
/// All stages of compilation for a target, in order.
std::vector<ListedStage> listed_stages(const Target& target);
/// The same for people; the target by its name.
std::string list_stages(const std::string& target);

/// Of listed_stages() those that follow the passes: lowering_stages(), then code_stages().
std::vector<Stage> stages_after_passes(const Target& target);

/// Throws a UserError for a stage that does not run: [usage] for one of the list, which says what option brings it
/// in, else [pass_name]. An empty target: none is named.
[[noreturn]] void throw_missing_stage(const std::string& stage, const std::string& target);

/// What some stages need to know.
struct StageOptions {
  Target target = Target::host();
  DimBindings dims = {};  ///< for "memory-plan": a size of every unknown dim
};
/// What a lowered graph is at one of the stages after the passes but "rematerialize", which is its graph. `runs`
/// takes the runs of stages that come after the lowered program: "memory-plan" and those of code. UserError
/// [dim_option] for a dim that "memory-plan" needs and that has no size.
std::string stage_text(const Lowered& lowered, std::string_view stage, const StageOptions& options,
                       std::vector<ir::PassRun>& runs);

}  // namespace lathe::tools
