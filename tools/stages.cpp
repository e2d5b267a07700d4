#include "tools/stages.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "codegen/cuda/emitter.h"
#include "codegen/llvm/jit.h"
#include "ir/kernel/printer.h"
#include "ir/support/nearest.h"
#include "ir/tensor/binding.h"
#include "passes/fusion/print_regions.h"
#include "passes/lowering/program/exchange_order.h"
#include "passes/memory/memory_plan.h"
#include "runtime/machine/seconds.h"
#include "runtime/target_machine.h"

namespace lathe::tools {

namespace {

/// "// launch 3: kernel 2 @softmax(%4, %9) for B, n_seq  from %9 softmax at mha.cpp:14"
std::string launches_text(const Program& program) {
  std::string text;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    std::vector<std::string> buffers, dims;
    for (const int buffer : launch.buffers) buffers.push_back(program.buffers[static_cast<std::size_t>(buffer)].name);
    for (const Dim& dim : launch.dims) dims.push_back(dim.to_string());
    text += fmt::format("// launch {}: kernel {} @{}({}){}{}  from {} at {}\n", i, launch.kernel,
                        program.kernels[static_cast<std::size_t>(launch.kernel)].name, fmt::join(buffers, ", "),
                        dims.empty() ? "" : " for ", fmt::join(dims, ", "), fmt::join(launch.names(), ", "),
                        launch.loc.to_string());
  }
  return text;
}

std::string kernel_text(const kernel::Kernel& kernel, std::string_view stage, const Target& target) {
  if (stage == "kernels") return kernel::print(kernel);
  if (stage == "llvm") return codegen::emit_llvm_ir(kernel, target.cpu);
  if (stage == "asm") return codegen::emit_assembly(kernel, target.cpu);
  LATHE_ASSERT(stage == "cuda");
  return cuda::emit(kernel, std::get<GpuInfo>(machine_info(target)));
}

std::string plan_text(const Lowered& lowered, const StageOptions& options, std::vector<ir::PassRun>& runs) {
  const std::vector<std::string> missing = ir::unbound_dims(lowered.graph, options.dims);
  if (!missing.empty())
    throw UserError(fmt::format("a memory plan is for one size of each dim: {} {} none", fmt::join(missing, ", "),
                                missing.size() == 1 ? "has" : "have"),
                    "dim_option", "give --dim NAME=SIZE");
  const auto start = std::chrono::steady_clock::now();
  const MemoryPlan plan = plan_memory(lowered.program, options.dims);
  runs.push_back({"memory-plan", seconds_since(start), lowered.graph.size(), lowered.graph.size(),
                  fmt::format("an arena of {}", format_bytes(plan.arena_bytes))});
  return print_plan(plan, lowered.program);
}

/// The option that brings a stage in; empty for one that always runs.
std::string option_for(std::string_view stage) {
  static const std::map<std::string_view, std::string_view> options{
      {"dtype", "--dtype"},
      {"mixed-bf16", "--precision bf16"},
      {"mixed-f16", "--precision f16"},
      {"known-sizes", "--dim and --chunk-rows"},
      {"evaluation", "--evaluation"},
      {"shard", "--mesh, and --split, --states or --parameters"},
      {"ring", "--mesh, --split and --ring always"},
      {"require-attention", "--require-fused"},
      {"rematerialize", "--memory-budget and --dim"}};
  const auto found = options.find(stage);
  return std::string(found == options.end() ? std::string_view() : found->second);
}

const ListedStage* find_stage(const std::vector<ListedStage>& stages, const std::string& name) {
  const auto found = std::ranges::find(stages, name, &ListedStage::name);
  return found == stages.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Stage> stages_after_passes(const Target& target) {
  std::vector<Stage> stages = lowering_stages(machine_of(target));
  for (Stage& stage : code_stages(target)) stages.push_back(std::move(stage));
  return stages;
}

std::vector<ListedStage> listed_stages(const Target& target) {
  using Part = ListedStage::Part;
  std::vector<ListedStage> stages;
  const auto add = [&](Part part, const std::string& name, const std::string& doc) {
    stages.push_back({part, name, doc, option_for(name)});
  };
  for (const Stage& stage : whole_graph_stages()) add(Part::whole_graph, stage.name, stage.doc);
  const ir::Pipeline passes = compile_pipeline(machine_of(target), {.attention = AttentionFusion::required});
  const std::vector<std::string> names = ir::stage_names(passes);
  const std::size_t common = ir::default_pipeline().size();
  for (std::size_t i = 0; i < passes.size(); ++i)
    add(i < common ? Part::every_target : Part::target, names[i], passes[i].doc);
  for (const Stage& stage : stages_after_passes(target)) add(Part::after_passes, stage.name, stage.doc);
  return stages;
}

std::string list_stages(const std::string& target) {
  using Part = ListedStage::Part;
  const std::map<Part, std::string> titles{
      {Part::whole_graph, "where asked for, first:"},
      {Part::every_target, "for every target:"},
      {Part::target, fmt::format("for the target {} (--target names another):", target)},
      {Part::after_passes, "from here on no passes:"}};
  std::string text = "the stages of compilation, in order; dump --after STAGE shows each\n";
  std::optional<Part> now;
  for (const ListedStage& stage : listed_stages(Target::named(target))) {
    if (now != stage.part) text += titles.at(stage.part) + "\n";
    now = stage.part;
    text += fmt::format("  {:<20} {}{}\n", stage.name, stage.doc,
                        stage.option.empty() ? "" : fmt::format(" ({})", stage.option));
  }
  return text;
}

void throw_missing_stage(const std::string& stage, const std::string& target) {
  const std::string here = target.empty() ? "host" : target;
  const std::vector<ListedStage> stages = listed_stages(Target::named(here));
  if (const ListedStage* found = find_stage(stages, stage)) {
    const std::string option = target.empty() && found->part == ListedStage::Part::target
                                   ? fmt::format("--target {}{}", here, found->option.empty() ? "" : " and ")
                                   : "";
    throw UserError(fmt::format("the stage {} is not asked for", stage), "usage",
                    fmt::format("give {}{}", option, found->option));
  }
  for (const std::string other : {"host", "cuda"})
    if (find_stage(listed_stages(Target::named(other)), stage))
      throw UserError(fmt::format("the target {} has no stage named '{}'", here, stage), "usage",
                      fmt::format("give --target {}", other));
  std::vector<std::string_view> names;
  for (const ListedStage& each : stages) names.push_back(each.name);
  throw UserError(fmt::format("there is no stage named '{}'", stage), "pass_name",
                  did_you_mean_or_list(stage, names, "the stages are"));
}

std::string stage_text(const Lowered& lowered, std::string_view stage, const StageOptions& options,
                       std::vector<ir::PassRun>& runs) {
  if (stage == "fuse") return print_regions(lowered.regions, lowered.graph);
  if (stage == "exchanges") return print_exchanges(lowered.program);
  if (stage == "memory-plan") return plan_text(lowered, options, runs);
  const Program& program = lowered.program;
  std::string text = stage == "kernels" ? launches_text(program) : std::string();
  const std::string_view comment = stage == "llvm" ? ";" : stage == "asm" ? "#" : "//";
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    text += fmt::format("\n{} kernel {}\n", comment, i) + kernel_text(program.kernels[i], stage, options.target);
  if (stage != "kernels")
    runs.push_back({std::string(stage), seconds_since(start), lowered.graph.size(), lowered.graph.size(),
                    fmt::format("code of {} kernels", program.kernels.size())});
  return text;
}

}  // namespace lathe::tools
