#include "tools/list_stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ir/support/nearest.h"
#include "passes/compile/compilation.h"
#include "runtime/backend.h"

namespace lathe::tools {

namespace {

/// The stages of a target with their labels.
struct LabelledStages {
  explicit LabelledStages(const std::string& target)
      : stages(stages_of(machine_of(Target::named(target)))), labels(stage_labels(stages)) {}

  const Stage* find(const std::string& label) const {
    const auto found = std::ranges::find(labels, label);
    return found == labels.end() ? nullptr : &stages[static_cast<std::size_t>(found - labels.begin())];
  }

  std::vector<Stage> stages;
  std::vector<std::string> labels;
};

}  // namespace

std::string list_stages(const std::string& target) {
  using Part = Stage::Part;
  const std::map<Part, std::string> titles{
      {Part::whole_graph, "on request, first:"},
      {Part::every_target, "for every target:"},
      {Part::target, fmt::format("for the target {} (--target selects another):", target)},
      {Part::lowering, "after the passes:"}};
  const LabelledStages all(target);
  std::string text = "the stages of compilation, in order; dump --after STAGE prints the result of each\n";
  std::optional<Part> now;
  for (std::size_t i = 0; i < all.stages.size(); ++i) {
    const Stage& stage = all.stages[i];
    if (now != stage.part && titles.contains(stage.part)) text += titles.at(stage.part) + "\n";
    now = stage.part;
    text += fmt::format("  {:<20} {}{}\n", all.labels[i], stage.doc,
                        stage.option.empty() ? "" : fmt::format(" ({})", stage.option));
  }
  return text;
}

void throw_missing_stage(const std::string& stage, const std::string& target) {
  const std::string here = target.empty() ? "host" : target;
  const LabelledStages all(here);
  if (const Stage* found = all.find(stage)) {
    const std::string option = target.empty() && found->part == Stage::Part::target
                                   ? fmt::format("--target {}{}", here, found->option.empty() ? "" : " and ")
                                   : "";
    throw UserError(fmt::format("the stage {} is not enabled", stage), "usage",
                    fmt::format("give {}{}", option, found->option));
  }
  for (const std::string other : {"host", "cuda"})
    if (LabelledStages(other).find(stage))
      throw UserError(fmt::format("the target {} has no stage named '{}'", here, stage), "usage",
                      fmt::format("give --target {}", other));
  throw UserError(fmt::format("there is no stage named '{}'", stage), "pass_name",
                  did_you_mean_or_list(stage, {all.labels.begin(), all.labels.end()}, "the stages are"));
}

}  // namespace lathe::tools
