#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "ir/support/visible.h"
#include "ir/tensor/text/printer.h"
#include "passes/check/find_fault.h"
#include "passes/check/results.h"
#include "passes/compile/compilation.h"
#include "tools/commands/commands.h"
#include "tools/execute.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"
#include "tools/options/graph_options.h"
#include "tools/options/number_option.h"
#include "tools/options/target_option.h"

namespace lathe::tools {

namespace {

struct VerifyOptions {
  GraphSource source;
  std::string file;
  GraphOptions graph;
  ArgumentOptions arguments;
  int threads = 0;
  std::optional<double> tolerance;
};

/// Runs compiled code. Its buffers are filled with NaN first.
Tensors run_compiled(const ir::Graph& graph, const Arguments& arguments, const VerifyOptions& options) {
  return execute(graph, arguments, {.threads = options.threads, .poison = true, .lower = options.graph.lower});
}

std::string names(std::vector<std::string> list) {
  for (std::string& name : list) name = visible(name);
  return fmt::format("{}", fmt::join(list, ", "));
}

/// Describes the op that differs, how it was found, and the results that depend on it.
std::string describe(const ir::Fault& fault, const ir::Graph& graph) {
  const std::string line = graph[fault.value].loc.to_string();
  std::string text;
  switch (fault.kind) {
    case ir::Fault::Kind::op:
      text = fmt::format("the first op that differs on the same operands is at {}", line);
      break;
    case ir::Fault::Kind::alone:
      text = fmt::format("the op at {} differs if its value is the only output; its operands do not", line);
      break;
    case ir::Fault::Kind::together:
      text = fmt::format(
          "every value is right if it is the only output; the op at {} differs {}", line,
          fault.with.empty() ? "as the new value of its state" : fmt::format("together with {}", names(fault.with)));
      break;
  }
  return fmt::format("{}:\n    {}\n    off by {:.2e} (at most {:.2e}), worst at {}\n    wrong because of it: {}",
                     text, ir::print_node(graph, fault.value, {.locations = false}),
                     fault.nearness.difference.largest, fault.nearness.allowed, fault.worst, names(fault.inherits));
}

void run(const VerifyOptions& options) {
  const LoadedModel model = load_model(options.file, options.source);
  const ir::Graph graph = as_asked(model.graph, options.graph);
  ArgumentOptions from = options.arguments;
  from.random = true;
  const Arguments arguments = load_arguments(graph, from, !options.graph.dtype.empty(), model.weights);
  const ir::ExpectOptions expect{
      .interpret = {.dims = arguments.dims}, .tolerance = options.tolerance, .rewrite = as_fused};
  const std::vector<ir::Output> results = ir::named_results(graph);
  std::vector<ir::ValueId> values;
  for (const ir::Output& result : results) values.push_back(result.value);
  ir::ExpectedValues expected(graph, arguments.tensors, values, expect);
  const Tensors found = run_compiled(graph, arguments, options);
  std::vector<std::string> wrong, undecided;
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const HostTensor& tensor = found.at(results[i].name);
    const ir::Nearness nearness = expected.compare(i, tensor);
    const bool fine = nearness.near() && !nearness.none_decided;
    text += fmt::format("{:<5} {:<24} off by {:.2e} of {:.2e} (at most {:.2e})",
                        fine              ? "ok"
                        : nearness.near() ? "open"
                                          : "WRONG",
                        visible(results[i].name), nearness.difference.largest, nearness.largest, nearness.allowed);
    if (!nearness.near()) text += "  worst at " + ir::describe(nearness.difference, tensor, expected[i]);
    if (nearness.undecided > 0)
      text += fmt::format("  no tolerance can be stated for {} of {} elements: roundings decide them",
                          nearness.undecided, tensor.numel());
    if (!fine) (nearness.near() ? undecided : wrong).push_back(results[i].name);
    text += "\n";
  }
  write_text("-", text);
  if (wrong.empty() && undecided.empty()) return;
  const auto compiled = [&](const ir::Graph& part) { return run_compiled(part, arguments, options); };
  std::vector<std::string> faults;
  for (const ir::Fault& fault : ir::find_faults(graph, arguments.tensors, wrong, compiled, expect))
    faults.push_back(describe(fault, graph));
  if (!undecided.empty())
    faults.push_back(
        fmt::format("roundings alone decide every element of {}: verify it with --dtype f64", names(undecided)));
  const std::string_view verdict =
      wrong.empty() ? "cannot be verified" : "differ between compiled code and interpreter, or cannot be verified";
  throw UserError(fmt::format("{} of {} results {}", wrong.size() + undecided.size(), results.size(),
                              undecided.empty() ? "differ between compiled code and interpreter" : verdict),
                  "verify_mismatch", fmt::format("{}", fmt::join(faults, "\n  ")));
}

}  // namespace

void add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Compare compiled code with the interpreter on the same arguments");
  command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_source_options(*command, options->source);
  add_argument_options(*command, options->arguments);
  add_graph_options(*command, options->graph);
  not_negative(command->add_option("--tolerance", options->tolerance,
                                   "Maximum difference of an element, relative to the largest element of its result "
                                   "(default: from the effect of roundings)"));
  add_threads_option(*command, options->threads);
  command->footer(
      "Arguments that no file contains are generated. A result may differ by a few roundings of its dtype, plus a\n"
      "multiple of the effect of roundings alone. If it differs by more, the error names the first op that differs\n"
      "and its source line.\n"
      "Example: lathe verify model.lathe --dim n_seq=33 --seed 7");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
