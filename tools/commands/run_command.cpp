#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <set>
#include <string>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "passes/check/find_nonfinite.h"
#include "runtime/files/finite.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/tensors/tensor_file.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
#include "tools/execute.h"
#include "tools/inputs/files.h"
#include "tools/inputs/kernel_file.h"
#include "tools/inputs/program_file.h"
#include "tools/options/arguments.h"
#include "tools/options/graph_options.h"
#include "tools/options/memory_budget.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"

namespace lathe::tools {

namespace {

struct RunOptions {
  GraphSource source;
  std::string file, output;
  GraphOptions graph;
  ArgumentOptions arguments;
  ExecuteOptions execute;
  bool find_nan = false;
};

bool is_finite(const Tensors& results) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : results) views.push_back(view_of(name, tensor));
  return !find_not_finite(views);
}

Tensors results_of(const RunOptions& options) {
  if (is_kernel_file(options.file)) return run_kernel_file(options.file, options.arguments);
  if (is_program_file(options.file))
    return run_program_file(options.file, options.arguments, options.execute.target, options.execute.threads);
  const LoadedModel model = load_model(options.file, options.source);
  const ir::Graph graph = as_asked(model.graph, options.graph);
  const Arguments arguments = load_arguments(graph, options.arguments, !options.graph.dtype.empty(), model.weights);
  ExecuteOptions how = options.execute;
  how.lower = options.graph.lower;
  Tensors results = execute(graph, arguments, how);
  if (options.find_nan && !is_finite(results))
    throw ir::nonfinite_error(ir::to_string(
        ir::find_nonfinite(graph,
                           [&](const ir::Graph& instrumented) { return execute(instrumented, arguments, how); }),
        graph));
  return results;
}

/// Throws [usage] for an option that has no effect on a kernel file or a program file.
void require_effects(const CLI::App& command, const std::string& file) {
  std::set<std::string> known{"FILE", "--input", "--dim", "--seed", "--random", "--output"};
  if (is_program_file(file)) known.insert({"--target", "--threads"});
  const std::string_view why =
      is_program_file(file) ? "a program file, which is compiled already" : "a kernel file, which is interpreted";
  require_effective(command, known, why, "leave it out, or give a graph");
}

void run(const RunOptions& options) {
  const Tensors results = results_of(options);
  if (!options.output.empty()) {
    write_tensors(options.output, results);
    return;
  }
  std::string text;
  for (const auto& [name, tensor] : results) text += fmt::format("{} {}\n", visible(name), tensor.to_string());
  write_text("-", text);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Run a graph, a program or a kernel once, and print or save its outputs and updated states");
  command
      ->add_option(
          "FILE", options->file,
          "IR text file, program file (.program, of dump --after collectives), kernel file (.kernel, which is "
          "interpreted), ONNX or .pt2 file, or model directory")
      ->required();
  add_source_options(*command, options->source);
  add_argument_options(*command, options->arguments);
  command->add_option("-o,--output", options->output,
                      "Output file, .safetensors or .npz (default: print the results)");
  add_graph_options(*command, options->graph);
  CLI::Option* interpret = command->add_flag("--interpret", options->execute.interpret,
                                             "Use the reference interpreter instead of compiled code");
  command->add_flag("--find-nan", options->find_nan,
                    "Fail if a result is NaN or infinite, and name the op that makes the first one");
  add_memory_budget(*command, options->execute.memory_budget)->excludes(interpret);
  add_tune(*command, options->execute.tune)->excludes(interpret);
  add_target_option(*command, options->execute.target);
  add_threads_option(*command, options->execute.threads);
  command->footer(
      "Examples:\n"
      "  lathe run mha.lathe --input weights.safetensors --input batch.safetensors -o out.safetensors\n"
      "  lathe run mha.lathe --random --dim n_seq=16,nbatches=2 --interpret\n"
      "  lathe run mha.lathe --random --find-nan\n"
      "  lathe run mha.program --random --dim n_seq=16,nbatches=2\n"
      "  lathe run scale.kernel --random --dim rows=2,cols=8");
  command->callback([options, command] {
    if (is_kernel_file(options->file) || is_program_file(options->file)) require_effects(*command, options->file);
    if (options->execute.interpret)
      refuse_options(*command,
                     {"--target", "--threads", "--packed-weights", "--chunk-rows", "--require-fused",
                      "--no-fused-attention", "--no-joined-launches"},
                     "--interpret, which compiles nothing");
    run(*options);
  });
}

}  // namespace lathe::tools
