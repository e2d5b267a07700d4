#include <CLI/CLI.hpp>

#include "ir/tensor/text/printer.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dce.h"
#include "tools/commands/commands.h"
#include "tools/inputs/files.h"

namespace lathe::tools {

namespace {

struct GradOptions {
  GraphSource source;
  std::string file, output = "-";
  std::vector<std::string> of, wrt;
  bool only = false, zeros = false, no_locations = false;
};

/// Parses "y" or "y=dy": an output, and the name of the input for its cotangent.
ir::GradientRequest::OutputSeed parse_seed(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return {text, ""};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void run(const GradOptions& options) {
  ir::GradientRequest request;
  for (const std::string& seed : options.of) request.outputs.push_back(parse_seed(seed));
  request.wrt = options.wrt;
  request.keep_outputs = !options.only;
  request.unused = options.zeros ? ir::Unused::zeros : ir::Unused::error;
  try {
    const ir::Graph graph = ir::dce(ir::differentiate(load_graph(options.file, options.source), request));
    write_text(options.output, ir::print(graph, {.locations = !options.no_locations}));
  } catch (const UserError& error) {
    if (error.label() != "grad_wrt_unused") throw;
    throw error.with_note("or give --zeros to make its gradient zero");
  }
}

}  // namespace

void add_grad(CLI::App& app) {
  auto options = std::make_shared<GradOptions>();
  CLI::App* command = app.add_subcommand("grad", "Differentiate a graph: add an output grad.NAME for each gradient");
  command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_source_options(*command, options->source);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command
      ->add_option("--of", options->of,
                   "Outputs to differentiate, as NAME or NAME=COTANGENT (default: all float outputs)")
      ->allow_extra_args(false)
      ->delimiter(',');
  command
      ->add_option(
          "--wrt", options->wrt,
          "Arguments or named values to differentiate with respect to (default: all parameters, or all inputs)")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_flag("--only", options->only, "Omit the graph's own outputs and updates");
  command->add_flag("--zeros", options->zeros, "Return zeros instead of an error if no output depends on a value");
  command->add_flag("--no-locations", options->no_locations, "Omit loc(...)");
  command->footer(
      "The cotangent of a scalar output is 1. Any other output gets a new input for it, named cot.NAME by default.\n"
      "The result is an ordinary graph: differentiate it again for second derivatives.\n"
      "Example: lathe grad model.lathe --of loss --wrt W_q,W_k");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
