#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "ir/support/error.h"
#include "ir/tensor/diff/graph_diff.h"
#include "tools/commands/commands.h"
#include "tools/exit_status.h"
#include "tools/inputs/files.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

constexpr int graphs_differ = 1, diff_failed = 2;

struct DiffCommandOptions {
  std::string a, b, output = "-";
  GraphSource source;
  ir::DiffOptions diff;
  bool stat = false, no_names = false;
};

ir::GraphDiff compare(const DiffCommandOptions& options) {
  if (options.a == "-" && options.b == "-")
    throw UserError("both graphs are standard input", "usage", "give a file for one of them");
  ir::DiffOptions how = options.diff;
  how.names = !options.no_names;
  ir::GraphDiff found = ir::diff(load_graph(options.a, options.source), load_graph(options.b, options.source), how);
  write_text(options.output, (options.stat ? "" : ir::to_string(found)) + ir::summary(found) + "\n");
  return found;
}

/// Like diff: status 1 means that the graphs differ, so errors have status 2.
void run_diff(const DiffCommandOptions& options) {
  try {
    if (compare(options).is_empty()) return;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    print_error(fmt::format("lathe: {}\n", error.what()));
    throw ExitStatus(diff_failed);
  }
  throw ExitStatus(graphs_differ);
}

}  // namespace

void add_diff(CLI::App& app) {
  auto options = std::make_shared<DiffCommandOptions>();
  CLI::App* command = app.add_subcommand("diff", "Compare two graphs by structure and names");
  command->add_option("A", options->a, "IR text, ONNX or .pt2 file, or model directory")->required();
  command->add_option("B", options->b, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_source_options(*command, options->source);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->add_flag("--stat", options->stat, "Print only the counts of differences");
  command->add_flag("--no-names", options->no_names, "Ignore the names of the graph and of values");
  command->add_flag("--locations", options->diff.locations, "Also compare source lines and modules");
  command->add_flag("--all-types", options->diff.implied_types,
                    "Also list values whose type differs only because an operand's type does");
  command->footer(
      "The exit status is 0 if the graphs are equal, 1 if they differ, and 2 after an error.\n"
      "Examples:\n"
      "  lathe diff model.lathe changed.lathe\n"
      "  lathe dump model.lathe --after cse | lathe diff model.lathe - --stat");
  command->callback([options] { run_diff(*options); });
}

}  // namespace lathe::tools
