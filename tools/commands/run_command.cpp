#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/support/visible.h"
#include "passes/transforms/convert_dtype.h"
#include "runtime/files/safetensors.h"
#include "tools/commands/commands.h"
#include "tools/execute.h"
#include "tools/files.h"
#include "tools/options/arguments.h"
#include "tools/options/memory_budget.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"

namespace lathe::tools {

namespace {

struct RunOptions {
  std::string file, output, dtype, precision = "f32";
  ArgumentOptions arguments;
  ExecuteOptions execute;
};

void run(const RunOptions& options) {
  ir::Graph graph = load_graph(options.file);
  if (!options.dtype.empty()) graph = ir::convert_dtype(graph, f32, *parse_dtype(options.dtype));
  graph = with_precision(graph, options.precision);
  const Arguments arguments = load_arguments(graph, options.arguments, !options.dtype.empty());
  const Tensors results = execute(graph, arguments, options.execute);
  if (!options.output.empty()) {
    write_safetensors(options.output, results);
    return;
  }
  std::string text;
  for (const auto& [name, tensor] : results) text += fmt::format("{} {}\n", visible(name), tensor.to_string());
  write_text("-", text);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a graph once; gives outputs and updated states");
  command->add_option("FILE", options->file, "IR text")->required();
  add_argument_options(*command, options->arguments);
  add_lower_options(*command, options->execute.lower);
  command->add_option("-o,--output", options->output, "A .safetensors file for the results (default: print them)");
  command->add_option("--dtype", options->dtype, "Run the graph's f32 values at this dtype")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "f16"}));
  add_precision_option(*command, options->precision);
  CLI::Option* interpret = command->add_flag("--interpret", options->execute.interpret,
                                             "Use the reference interpreter, not compiled code");
  add_memory_budget(*command, options->execute.memory_budget)->excludes(interpret);
  add_tune(*command, options->execute.tune)->excludes(interpret);
  add_target_option(*command, options->execute.target);
  add_threads_option(*command, options->execute.threads);
  command->footer(
      "Examples:\n"
      "  lathe run mha.lathe --input weights.safetensors --input batch.safetensors -o out.safetensors\n"
      "  lathe run mha.lathe --random --dim n_seq=16,nbatches=2 --interpret");
  command->callback([options] {
    add_weights_of(options->file, options->arguments);
    run(*options);
  });
}

}  // namespace lathe::tools
