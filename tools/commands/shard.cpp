#include "passes/shard/shard.h"

#include <CLI/CLI.hpp>

#include "ir/tensor/text/printer.h"
#include "tools/commands/commands.h"
#include "tools/files.h"

namespace lathe::tools {

namespace {

struct ShardOptions {
  std::string file, mesh, splits, output = "-";
  shard::ShardOptions parts;
  bool explain = false, keep_gathered = false, no_locations = false;
};

void run(const ShardOptions& options) {
  const ir::Graph graph = load_graph(options.file);
  shard::ShardOptions parts = options.parts;
  parts.gather_again = !options.keep_gathered;
  const auto splits = options.splits.empty() ? std::vector<shard::Split>{} : shard::parse_splits(options.splits);
  const shard::Sharded sharded = shard::shard(graph, shard::Mesh::parse(options.mesh), splits, parts);
  if (options.explain)
    write_text(options.output, shard::explain(sharded));
  else
    write_text(options.output, ir::print(sharded.graph, {.locations = !options.no_locations}));
}

}  // namespace

void add_shard(CLI::App& app) {
  auto options = std::make_shared<ShardOptions>();
  CLI::App* command = app.add_subcommand("shard", "Divide a graph over processes: the graph that each of them runs");
  command->add_option("FILE", options->file, "IR text: a training step, or any other graph")->required();
  command->add_option("--mesh", options->mesh, "Axes and their numbers of processes, as data=4,model=2")->required();
  command->add_option("--split", options->splits, "Dims and the axes they are split over, as B:data,h:model");
  command->add_option("--states", options->parts.states,
                      "The axis over which optimizer states are split: each process updates its part of a parameter");
  command->add_option(
      "--parameters", options->parts.parameters,
      "The axis over which parameters and their states are split; they are gathered where they are used");
  command->add_flag("--keep-gathered", options->keep_gathered,
                    "Keep gathered parameters for the backward pass, instead of gathering them again");
  command->add_flag("--explain", options->explain,
                    "Tell what is exchanged, where and why, and what a process holds, instead of the graph");
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_flag("--no-locations", options->no_locations, "Leave out loc(...)");
  command->footer(
      "Dims that ops tie to a split one are split with it; nothing else is, and an op that needs all of one is an\n"
      "error. In C++ compile() divides a step so and runs it on several ranks (docs/distributed.md).\n"
      "Example: lathe shard step.lathe --mesh data=4,model=2 --split B:data,h:model,d_ff:model,vocab:model "
      "--explain");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
