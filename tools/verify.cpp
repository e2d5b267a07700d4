#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ir/support/visible.h"
#include "ir/tensor/op.h"
#include "ir/tensor/printer.h"
#include "passes/convert_dtype.h"
#include "passes/dce.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/compare_values.h"
#include "tools/execute.h"
#include "tools/files.h"
#include "tools/precision.h"

namespace lathe::tools {

namespace {

struct Options {
  std::string file, dtype, precision = "f32";
  ArgumentOptions arguments;
  int threads = 0;
  double tolerance = -1;  ///< negative: by dtype
};

double allowed(const Options& options, DType dtype) {
  return options.tolerance >= 0 && !is_integer(dtype) && dtype != boolean ? options.tolerance
                                                                          : default_tolerance(dtype);
}

/// How a graph is run: by the interpreter, or compiled.
ExecuteOptions by(const Options& options, bool interpreter) {
  ExecuteOptions how;
  how.interpret = interpreter;
  how.threads = options.threads;
  return how;
}

/// A value of the graph that compiled code gets wrong.
struct Culprit {
  ir::ValueId value;
  Distance distance;
};

/// The graph with these values as its only outputs, named v0, v1, ...
ir::Graph probe(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  ir::Graph result = graph;
  result.updates.clear();
  result.outputs.clear();
  for (std::size_t i = 0; i < values.size(); ++i) result.outputs.push_back({fmt::format("v{}", i), values[i]});
  return ir::dce(result);
}

/// The first of `values` that compiled code gets wrong when it computes all of them.
std::optional<Culprit> first_wrong(const ir::Graph& graph, const std::vector<ir::ValueId>& values,
                                   const Arguments& arguments, const Options& options) {
  const auto wanted = ir::interpret_values(graph, arguments.tensors, values, {.round = true, .dims = arguments.dims});
  const ir::Tensors got = execute(probe(graph, values), arguments, by(options, false));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Distance found = distance(got.at(fmt::format("v{}", i)), wanted[i]);
    if (!(found.error <= allowed(options, graph[values[i]].type.dtype))) return Culprit{values[i], found};
  }
  return std::nullopt;
}

/// All values at once tells most faults in one compilation; a fault of fusion shows only when a value is asked for
/// alone, so then each is.
std::optional<Culprit> find_culprit(const ir::Graph& graph, const Arguments& arguments, const Options& options) {
  std::vector<ir::ValueId> values;
  for (const ir::ValueId id : ir::all_values(graph))
    if (!graph[id].op->as<ir::Argument>()) values.push_back(id);
  if (auto culprit = first_wrong(graph, values, arguments, options)) return culprit;
  for (const ir::ValueId id : values)
    if (auto culprit = first_wrong(graph, {id}, arguments, options)) return culprit;
  return std::nullopt;
}

/// The type of a result: an output's, or that of an updated state.
DType result_dtype(const ir::Graph& graph, const std::string& name) {
  for (const ir::Output& output : graph.outputs)
    if (output.name == name) return graph[output.value].type.dtype;
  return graph[graph.find_argument(name)].type.dtype;
}

void run(const Options& options) {
  ir::Graph graph = load_graph(options.file);
  if (!options.dtype.empty()) graph = ir::convert_dtype(graph, f32, *parse_dtype(options.dtype));
  graph = with_precision(graph, options.precision);
  ArgumentOptions from = options.arguments;
  from.random = true;
  const Arguments arguments = load_arguments(graph, from, !options.dtype.empty());
  const ir::Tensors wanted = execute(graph, arguments, by(options, true));
  const ir::Tensors got = execute(graph, arguments, by(options, false));
  std::string text;
  int wrong = 0;
  for (const auto& [name, tensor] : wanted) {
    const Distance found = distance(got.at(name), tensor);
    const double limit = allowed(options, result_dtype(graph, name));
    const bool good = found.error <= limit;
    wrong += good ? 0 : 1;
    text += fmt::format("{:<5} {:<24} relative error {:.2e} (at most {:.0e}){}{}\n", good ? "ok" : "WRONG",
                        visible(name), found.error, limit, good ? "" : "  worst at ", good ? "" : found.worst);
  }
  write_text("-", text);
  if (wrong == 0) return;
  std::string where = "no single op differs when it is computed by itself";
  if (const auto culprit = find_culprit(graph, arguments, options))
    where = fmt::format("the first op that differs is at {}:\n    {}\n    relative error {:.2e}, worst at {}",
                        graph[culprit->value].loc.to_string(),
                        ir::print_node(graph, culprit->value, {.locations = false}), culprit->distance.error,
                        culprit->distance.worst);
  throw UserError(fmt::format("{} of {} results differ between compiled code and interpreter", wrong, wanted.size()),
                  "verify_mismatch", where);
}

}  // namespace

void add_verify(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("verify", "Compare compiled code with the interpreter on the same arguments");
  command->add_option("FILE", options->file, "IR text")->required();
  add_argument_options(*command, options->arguments);
  command->add_option("--dtype", options->dtype, "Run the graph's f32 values at this dtype")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "f16"}));
  add_precision_option(*command, options->precision);
  command
      ->add_option("--tolerance", options->tolerance,
                   "Largest relative error in the Euclidean norm (default: by dtype)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--threads", options->threads, "0: one a CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->footer(
      "Arguments that no file has are made up. Where results differ, names the first op that does, with its source "
      "line.\n"
      "Example: lathe verify model.lathe --dim n_seq=33 --seed 7");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
