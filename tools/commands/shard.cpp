#include "passes/shard/shard.h"

#include <CLI/CLI.hpp>

#include "ir/tensor/text/printer.h"
#include "tools/commands/commands.h"
#include "tools/division.h"
#include "tools/files.h"

namespace lathe::tools {

namespace {

struct ShardOptions {
  std::string file, output = "-";
  Division division;
  bool explain = false, no_locations = false;
};

void run(const ShardOptions& options) {
  const ir::Graph graph = load_graph(options.file);
  const Division& division = options.division;
  const shard::Sharded sharded = shard::shard(graph, division.mesh(), division.splits(), division.parts());
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
  add_division(*command, options->division)->required();
  command->add_flag("--explain", options->explain,
                    "Tell what is exchanged, where and why, and what a process holds, instead of the graph");
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
