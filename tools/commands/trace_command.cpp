#include "ir/support/visible.h"
#include "runtime/host/seconds.h"
#include "runtime/trace/trace.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "runtime/executable_program.h"
#include "runtime/host/host_cpu.h"
#include "tools/commands/commands.h"
#include "tools/execute.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"
#include "tools/options/memory_budget.h"
#include "tools/options/number_option.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"

namespace lathe::tools {

namespace {

struct TraceOptions {
  GraphSource source;
  std::string file, output, precision = "f32", memory_budget;
  ArgumentOptions arguments;
  LowerOptions lower;
  std::string target = "host";
  int threads = 0, steps = 3, warmup = 1, top = 20;
  double tune = 0;
};

void run(const TraceOptions& options) {
  const int threads = options.threads > 0 ? options.threads : usable_cpus();
  const auto device = open_device(compile_options(options.target), threads);
  LoadedModel model = load_model(options.file, options.source);
  model.graph = with_precision(model.graph, options.precision);
  auto [graph, executable, inputs, free_dims] = prepare(std::move(model), options.arguments,
                                                        {.threads = threads,
                                                         .lower = options.lower,
                                                         .target = options.target,
                                                         .memory_budget = options.memory_budget,
                                                         .tune = options.tune});
  for (int i = 0; i < options.warmup; ++i) executable.run(inputs, free_dims);
  const DimBindings dims = executable.bind(inputs, free_dims);
  Trace trace{.program = program_of(executable),
              .plan = memory_plan_of(executable, dims),
              .dims = dims,
              .machine = device->rates(),
              .runs = {}};
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto now = [&] { return seconds_since(begin); };
  for (int i = 0; i < options.steps; ++i) {
    TracedRun traced{.start = now(), .seconds = 0, .launches = {}};
    executable.run_traced(inputs, traced.launches, free_dims);
    traced.seconds = now() - traced.start;
    trace.runs.push_back(std::move(traced));
  }
  if (!options.output.empty()) write_text(options.output, chrome_trace_json(trace));
  if (options.output != "-")
    write_text("-", fmt::format("graph @{} on {}: ", visible(graph.name), device->description()) +
                        top_table(trace, options.top));
}

}  // namespace

void add_trace(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command =
      app.add_subcommand("trace", "Profile runs of a graph: a table of kernels, and a timeline for the browser");
  command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_source_options(*command, options->source);
  command->add_option(
      "-o,--output", options->output,
      "Output file for the timeline, Chrome trace JSON (ui.perfetto.dev, chrome://tracing); - is standard output");
  add_argument_options(*command, options->arguments);
  add_lower_options(*command, options->lower);
  add_packed_weights(*command, options->lower);
  add_target_option(*command, options->target);
  add_precision_option(*command, options->precision);
  add_threads_option(*command, options->threads);
  between(command->add_option("--steps", options->steps, "Number of traced runs"), 1, 10000)->capture_default_str();
  between(command->add_option("--warmup", options->warmup, "Number of runs before the first traced run"), 0, 10000)
      ->capture_default_str();
  add_memory_budget(*command, options->memory_budget);
  add_tune(*command, options->tune);
  between(command->add_option("--top", options->top, "Maximum lines of the table"), 0, 100000)->capture_default_str();
  command->footer(
      "Arguments that no file contains are generated.\n"
      "Example:\n"
      "  lathe model gpt --layers 4 --step -o step.lathe\n"
      "  lathe trace step.lathe --dim B=4,T=64 -o trace.json");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
