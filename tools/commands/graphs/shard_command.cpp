#include "passes/shard/shard.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ir/ops/collectives.h"
#include "ir/support/error.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compilation.h"
#include "passes/compile/gather_choice.h"
#include "passes/compile/program_time.h"
#include "passes/compile/ring_choice.h"
#include "passes/compile/run_order.h"
#include "passes/machines/cpu_machine.h"
#include "passes/memory/memory_plan.h"
#include "passes/shard/explain/explain_shard.h"
#include "passes/shard/explain/explain_splits.h"
#include "runtime/target.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"
#include "tools/options/division.h"
#include "tools/options/memory_budget.h"
#include "tools/predict/rate_options.h"
#include "tools/predict/scaling_svg.h"
#include "tools/predict/scaling_table.h"

namespace lathe::tools {

namespace {

struct ShardOptions {
  std::string file, output = "-";
  Division division;
  bool explain = false, no_locations = false;
  bool predict = false;
  std::string growing, svg, target, memory_budget;
  std::vector<std::string> dims;
  RateOptions rates;
};

bool is_gpu(const Machine& machine) { return std::holds_alternative<GpuInfo>(machine.info); }

/// Returns the prediction table for increasing numbers of processes. Also writes its plot if requested.
std::string predict(const ShardOptions& options, const ir::Graph& graph, const Machine& machine,
                    shard::Scaling scaling) {
  if (is_gpu(machine))
    scaling.compile = [&](const ir::Graph& each) {
      return compiled_step(compile_graph(each, machine).program, scaling.rates);
    };
  else
    scaling.order = [&](const ir::Graph& each) { return in_run_order(compile_graph(each, machine)); };
  scaling.growing = options.growing.empty() ? scaling.mesh[0].name : options.growing;
  const shard::ScalingCurve curve = shard::predict_scaling(graph, scaling);
  if (!options.svg.empty())
    write_text(options.svg,
               scaling_svg(fmt::format("@{} on {}", graph.name, scaling.mesh.to_string()), scaling, curve));
  return scaling_table(scaling, curve);
}

/// Returns the planned memory per process on a GPU, or "" if sizes are missing.
std::string planned(const shard::Sharded& sharded, const Machine& machine, const DimBindings& dims) {
  if (!std::ranges::all_of(sharded.unknowns, [&](const auto& dim) { return dims.contains(dim.second.local); }))
    return "";
  const MemoryPlan plan = plan_memory(compile_graph(sharded.graph, machine).program, dims);
  return fmt::format("memory planned for {}, per process: {} for temporaries, {} for arguments and results\n",
                     std::get<GpuInfo>(machine.info).name, format_bytes(plan.arena_bytes),
                     format_bytes(plan.argument_bytes));
}

/// With a memory budget, sets how parameters are gathered to fit it. Returns the reason.
std::string choose_within_budget(const ShardOptions& options, const ir::Graph& graph, const Machine& machine,
                                 const DimBindings& dims, shard::ShardOptions& parts) {
  const shard::Mesh mesh = options.division.mesh();
  const std::vector<shard::Split> splits = options.division.splits();
  LowerOptions lowering{.memory = memory_budget(options.memory_budget, {})};
  if (!budget_chooses_gathers(parts, lowering)) return "";
  require_budget_support(machine);
  lowering.memory->dims = shard::local_dims(shard::shard(graph, mesh, splits, parts), dims);
  for (const auto& axis : mesh.axes()) lowering.memory->dims.emplace(ir::mesh_index_dim(axis.name), 0);
  const GatherChoice choice = choose_gathers(graph, mesh, splits, parts, machine, lowering);
  parts.second_gather = choice.second_gather;
  return choice.why;
}

/// Chooses ring attention or gathers by predicted cost for these sizes. Returns the reason.
std::string choose_way_of_keys(const ShardOptions& options, const ir::Graph& graph, const Machine& machine,
                               const shard::StepRates& rates, const DimBindings& dims, shard::ShardOptions& parts) {
  if (parts.ring != shard::RingWay::decide) return "";
  const shard::Sharded gathered = shard::shard(graph, options.division.mesh(), options.division.splits(), parts);
  DimBindings local = shard::local_dims(gathered, dims);
  for (const auto& axis : gathered.mesh.axes()) local.emplace(ir::mesh_index_dim(axis.name), 0);
  const LowerOptions lowering{.memory = memory_budget(options.memory_budget, local)};
  if (lowering.memory) require_budget_support(machine);
  const RingChoice choice = choose_ring(gathered.graph, machine, lowering, rates, local);
  parts.ring = choice.way;
  return choice.why;
}

/// Throws UserError [usage] for options of a form that is not printed.
void require_effects(const CLI::App& command, const ShardOptions& options) {
  if (!options.predict && command.get_option("--grow")->count() > 0)
    throw UserError("--grow has no effect without --predict", "usage", "add --predict, or leave it out");
  if (options.explain || options.predict) refuse_options(command, {"--no-locations"}, "--explain and --predict");
}

void run(const ShardOptions& options) {
  const ir::Graph graph = load_graph(options.file);
  shard::ShardOptions parts = options.division.parts();
  const std::vector<shard::Split> splits = options.division.splits();
  const shard::Mesh mesh = options.division.mesh();
  const DimBindings dims = given_dims(graph, options.dims);
  const Machine machine =
      options.target.empty() ? cpu_machine(unnamed_cpu()) : machine_of(Target::named(options.target));
  const shard::StepRates rates =
      options.target.empty() ? rates_of(options.rates) : rates_of(options.rates, machine.info);
  std::string why = choose_within_budget(options, graph, machine, dims, parts);
  why += choose_way_of_keys(options, graph, machine, rates, dims, parts);
  const shard::Sharded sharded = shard::shard(graph, mesh, splits, parts);
  if (!options.explain && !options.predict)
    return write_text(options.output, ir::print(sharded.graph, {.locations = !options.no_locations}));
  const DimBindings local = shard::local_dims(sharded, dims);
  std::string text;
  if (options.explain)
    text += shard::explain_splits(graph, sharded, splits) + shard::explain(sharded, rates, local) + why;
  if (options.explain && is_gpu(machine)) text += planned(sharded, machine, local);
  if (options.predict) text += predict(options, graph, machine, {mesh, splits, parts, {}, dims, rates});
  write_text(options.output, text);
}

}  // namespace

void add_shard(CLI::App& app) {
  auto options = std::make_shared<ShardOptions>();
  CLI::App* command =
      app.add_subcommand("shard", "Split a graph over processes, and print the graph that each process runs");
  command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_division(*command, options->division)->required();
  command->add_flag(
      "--explain", options->explain,
      "Print instead of the graph: the collectives, their places and reasons, and the memory of a process");
  command->add_flag(
      "--predict", options->predict,
      "Print instead of the graph: predicted time, efficiency and memory of a step on 1 to 4096 processes");
  command->add_option(
      "--grow", options->growing,
      "Mesh axis that grows to 1, 2, 4, .. processes in the prediction (default: the first axis of the mesh)");
  command->add_option("--svg", options->svg, "SVG file for the curves of the prediction")->needs("--predict");
  command
      ->add_option(
          "--dim", options->dims,
          "Size of a dim on this mesh for --explain, --predict and --memory-budget, as NAME=SIZE (repeatable)")
      ->allow_extra_args(false)
      ->delimiter(',');
  command
      ->add_option("--target", options->target,
                   "Target of each process for --explain and --predict, as for dump; for a GPU such as cuda:sm_90a, "
                   "times and memory are those of its compiled kernels (default: an x86-64-v4 CPU)")
      ->excludes(add_rate_options(*command, options->rates));
  command->add_option(
      "--memory-budget", options->memory_budget,
      "Memory limit of a process, such as 1.5GiB. Parameters that do not fit are gathered again in the backward "
      "pass, and ring attention runs if gathered keys and values do not fit (default: no limit)");
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->add_flag("--no-locations", options->no_locations, "Omit loc(...)");
  command->footer(
      "A split also splits the dims that ops tie to it, and no others. An op that needs all of a split dim is an "
      "error.\n"
      "lathe train takes the same options; in C++, compile() takes them (docs/distributed.md).\n"
      "Examples:\n"
      "  lathe shard step.lathe --mesh data=4,model=2 --split B:data,h:model,d_ff:model,vocab:model --explain\n"
      "  lathe shard step.lathe --mesh data=8 --split B:data --predict --dim B=64,T=1024 --target cuda:sm_90a\n");
  command->callback([options, command] {
    require_effects(*command, *options);
    run(*options);
  });
}

}  // namespace lathe::tools
