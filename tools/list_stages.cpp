#include "tools/list_stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ir/support/nearest.h"
#include "passes/compile/compilation.h"
#include "runtime/target.h"

namespace lathe::tools {

namespace {

std::vector<Stage> named_stages(const std::string& target) { return stages_of(machine_of(Target::named(target))); }

}  // namespace

std::string list_stages(const std::string& target) {
  using Part = Stage::Part;
  const std::map<Part, std::string> titles{
      {Part::whole_graph, "on request, first:"},
      {Part::every_target, "for every target:"},
      {Part::target, fmt::format("for the target {} (--target selects another):", target)},
      {Part::lowering, "after the passes:"}};
  std::string text = "the stages of compilation, in order; dump --after STAGE prints the result of each\n";
  std::optional<Part> now;
  for (const Stage& stage : named_stages(target)) {
    if (now != stage.part && titles.contains(stage.part)) text += titles.at(stage.part) + "\n";
    now = stage.part;
    text += fmt::format("  {:<20} {}{}\n", stage.label, stage.doc,
                        stage.option.empty() ? "" : fmt::format(" ({})", stage.option));
  }
  return text;
}

void throw_missing_stage(const std::string& stage, const std::string& target) {
  const std::string here = target.empty() ? "host" : target;
  const std::vector<Stage> all = named_stages(here);
  if (const std::size_t at = find_stage(all, stage); at < all.size()) {
    const std::string option = target.empty() && all[at].part == Stage::Part::target
                                   ? fmt::format("--target {}{}", here, all[at].option.empty() ? "" : " and ")
                                   : "";
    throw UserError(fmt::format("the stage {} is not enabled", stage), "usage",
                    fmt::format("give {}{}", option, all[at].option));
  }
  for (const std::string other : {"host", "cuda"})
    if (const std::vector<Stage> others = named_stages(other); find_stage(others, stage) < others.size())
      throw UserError(fmt::format("the target {} has no stage named '{}'", here, stage), "usage",
                      fmt::format("give --target {}", other));
  const std::vector<std::string> labels = labels_of(all);
  throw UserError(fmt::format("there is no stage named '{}'", stage), "pass_name",
                  did_you_mean_or_list(stage, {labels.begin(), labels.end()}, "the stages are"));
}

}  // namespace lathe::tools
