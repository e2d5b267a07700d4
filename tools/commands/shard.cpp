#include "passes/shard/shard.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/tensor/text/printer.h"
#include "passes/compile_pipeline.h"
#include "passes/cpu/lower_cpu.h"
#include "passes/run_order.h"
#include "passes/shard/explain_shard.h"
#include "tools/arguments.h"
#include "tools/commands/commands.h"
#include "tools/division.h"
#include "tools/files.h"
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
  std::string growing, svg;
  std::vector<std::string> dims;
  RateOptions rates;
};

/// What a process computes of its graph, in the order in which it runs on a CPU.
ir::Graph as_run(const ir::Graph& graph) {
  const Machine machine = cpu_machine({});
  return in_run_order(lower_prepared(ir::apply_passes(compile_pipeline(machine), graph), machine));
}

/// The table of a division on more and more processes; its picture too, where one is asked for.
std::string predict(const ShardOptions& options, const ir::Graph& graph, shard::Scaling scaling) {
  scaling.order = as_run;
  scaling.growing = options.growing.empty() ? scaling.mesh[0].name : options.growing;
  const shard::ScalingCurve curve = shard::predict_scaling(graph, scaling);
  if (!options.svg.empty())
    write_text(options.svg,
               scaling_svg(fmt::format("@{} on {}", graph.name, scaling.mesh.to_string()), scaling, curve));
  return scaling_table(scaling, curve);
}

void run(const ShardOptions& options) {
  const ir::Graph graph = load_graph(options.file);
  const shard::ShardOptions parts = options.division.parts();
  const std::vector<shard::Split> splits = options.division.splits();
  const shard::Mesh mesh = options.division.mesh();
  const shard::Sharded sharded = shard::shard(graph, mesh, splits, parts);
  if (!options.explain && !options.predict)
    return write_text(options.output, ir::print(sharded.graph, {.locations = !options.no_locations}));
  const DimBindings dims = given_dims(graph, options.dims);
  const shard::StepRates rates = rates_of(options.rates);
  std::string text;
  if (options.explain) text += shard::explain(sharded, rates, shard::local_dims(sharded, dims));
  if (options.predict) text += predict(options, graph, {mesh, splits, parts, {}, dims, rates});
  write_text(options.output, text);
}

}  // namespace

void add_shard(CLI::App& app) {
  auto options = std::make_shared<ShardOptions>();
  CLI::App* command = app.add_subcommand("shard", "Divide a graph over processes: the graph that each of them runs");
  command->add_option("FILE", options->file, "IR text: a training step, or any other graph")->required();
  add_division(*command, options->division)->required();
  command->add_flag("--explain", options->explain,
                    "Tell what is exchanged, where and why, and what a process holds, instead of the graph");
  command->add_flag("--predict", options->predict,
                    "Predict the time, efficiency and memory of a step on 1 to 4096 processes, instead of the graph");
  command->add_option("--grow", options->growing,
                      "The axis that has 1, 2, 4, .. processes in the prediction; without it the first of the mesh");
  command->add_option("--svg", options->svg, "Where to draw the prediction")->needs("--predict");
  command
      ->add_option("--dim", options->dims,
                   "For --explain and --predict: the size of a dim on this mesh, as NAME=SIZE")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_rate_options(*command, options->rates);
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_flag("--no-locations", options->no_locations, "Leave out loc(...)");
  command->footer(
      "Dims that ops tie to a split one are split with it; nothing else is, and an op that needs all of one is an\n"
      "error. lathe train divides its step by the same options, and in C++ compile() does (docs/distributed.md).\n"
      "Example: lathe shard step.lathe --mesh data=4,model=2 --split B:data,h:model,d_ff:model,vocab:model "
      "--explain");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
