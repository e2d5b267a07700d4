#include "passes/compile/compilation.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "ir/support/nearest.h"
#include "ir/tensor/text/printer.h"
#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/lowering/print_code.h"

namespace lathe {

namespace {

/// Passes that the request enables, with their labels.
struct EnabledPasses {
  ir::Pipeline pipeline;
  std::vector<std::string> labels;
};

void run_step(Compilation& now, const Stage& stage) {
  const auto start = std::chrono::steady_clock::now();
  const int before = now.graph.size();
  std::string result = stage.step(now);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  now.runs.push_back({stage.label, seconds.count(), before, now.graph.size(), std::move(result)});
}

/// Returns the remaining passes up to `last`, or up to the first step.
EnabledPasses next_passes(Compilation& now, const std::vector<Stage>& all, std::size_t last) {
  EnabledPasses passes;
  for (; now.next <= last && all[now.next].pass; ++now.next) {
    const Stage& stage = all[now.next];
    if (!is_enabled(stage, now.request)) continue;
    passes.labels.push_back(stage.label);
    passes.pipeline.push_back(
        {.name = stage.name,
         .doc = stage.doc,
         .run = [&stage, &now](ir::Graph graph) { return stage.pass(std::move(graph), now.request, now.machine); },
         .runs_on_bodies = stage.runs_on_bodies});
  }
  return passes;
}

void run_up_to(Compilation& now, const std::vector<Stage>& all, std::size_t last, const PipelineOptions& options) {
  if (const EnabledPasses passes = next_passes(now, all, last); !passes.pipeline.empty()) {
    if (options.dump_after && now.runs.empty()) options.dump_after("input", now.graph);
    ir::PipelineResult result = ir::run_passes(std::move(now.graph), passes.pipeline, passes.labels, options);
    now.graph = std::move(result.graph);
    now.runs.insert(now.runs.end(), result.runs.begin(), result.runs.end());
  }
  for (; now.next <= last && all[now.next].part != Stage::Part::code; ++now.next)
    if (is_enabled(all[now.next], now.request)) run_step(now, all[now.next]);
}

[[noreturn]] void throw_unknown_stage(std::string_view label, const std::vector<Stage>& all) {
  const std::vector<std::string> labels = labels_of(all);
  throw UserError(fmt::format("there is no stage named '{}'", label), "pass_name",
                  did_you_mean_or_list(label, {labels.begin(), labels.end()}, "the stages are"));
}

}  // namespace

void require_budget_support(const Machine& machine) {
  if (machine.keeps_budgets) return;
  const std::string name = std::visit([](const auto& info) { return std::string(info.name); }, machine.info);
  throw UserError(fmt::format("a memory budget is kept by code for CPUs alone, not for {}", name), "memory_target",
                  "leave out the budget, or compile for a CPU");
}

Compilation begin_compilation(ir::Graph graph, const Machine& machine, CompileRequest request) {
  if (request.lower.memory) require_budget_support(machine);
  return {{.graph = std::move(graph)}, std::move(request), machine};
}

Compilation begin_at_target(ir::Graph primitives, const Machine& machine, const LowerOptions& options) {
  Compilation now = begin_compilation(std::move(primitives), machine, {.lower = options});
  const std::vector<Stage> all = stages_of(machine);
  while (all[now.next].part < Stage::Part::target) ++now.next;
  return now;
}

void run_until(Compilation& now, std::string_view label, const PipelineOptions& options) {
  const std::vector<Stage> all = stages_of(now.machine);
  const std::size_t found = find_stage(all, label);
  if (found == all.size() || !is_enabled(all[found], now.request)) throw_unknown_stage(label, all);
  run_up_to(now, all, found, options);
}

void run_through(Compilation& now, Stage::Part part, const PipelineOptions& options) {
  const std::vector<Stage> all = stages_of(now.machine);
  std::size_t count = now.next;
  while (count < all.size() && all[count].part <= part) ++count;
  if (count > now.next) run_up_to(now, all, count - 1, options);
}

std::string print_stage(const Compilation& now, std::string_view label) {
  const std::vector<Stage> all = stages_of(now.machine);
  const std::size_t found = find_stage(all, label);
  if (found == all.size()) throw_unknown_stage(label, all);
  if (all[found].print) return all[found].print(now);
  if (all[found].part != Stage::Part::code) return ir::print(now.graph);
  return print_code(now.program, *std::ranges::find(now.machine.code, label, &CodeStage::name),
                    now.request.plan_sizes);
}

ir::Graph requested_graph(ir::Graph graph, CompileRequest request) {
  Compilation now = begin_compilation(std::move(graph), Machine{}, std::move(request));
  run_through(now, Stage::Part::whole_graph);
  return std::move(now.graph);
}

Compilation compile_graph(ir::Graph graph, const Machine& machine, CompileRequest request) {
  Compilation now = begin_compilation(std::move(graph), machine, std::move(request));
  run_until(now, "collectives");
  return now;
}

Compilation lower_graph(ir::Graph primitives, const Machine& machine, const LowerOptions& options) {
  Compilation now = begin_at_target(std::move(primitives), machine, options);
  run_until(now, "collectives");
  return now;
}

Program lower(ir::Graph primitives, const Machine& machine, const LowerOptions& options) {
  return lower_graph(std::move(primitives), machine, options).program;
}

ir::Graph as_fused(const ir::Graph& graph) {
  const ir::Graph primitives = ir::run_pipeline(graph, ir::default_pipeline({.on = false})).graph;
  return recompute_attention(prepare_for_fusion(primitives), {.delta = AttentionDelta{.converted = true}});
}

}  // namespace lathe
