#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "ir/support/visible.h"
#include "passes/memory/memory_plan.h"
#include "runtime/executable_program.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/peak.h"
#include "runtime/host/seconds.h"
#include "tools/bench/table.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
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

struct BenchOptions {
  std::string file, precision = "f32", memory_budget;
  ArgumentOptions arguments;
  LowerOptions lower;
  std::string target = "host";
  int threads = 0, repeat = 10, top = 12;
  double tune = 0;
  GraphSource source;
  std::vector<std::string> only;
  bool full = false, machine = false;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::string peak_text(const std::string& target, int threads, double& peak) {
  const CompileOptions machine = compile_options(target);
  const auto device = open_device(machine, threads);
  const DeviceRates rates = device->rates();
  peak = rates.flops;
  std::string text = fmt::format("machine: {}, {} multiply-add peak {:.1f} GFLOP/s, memory {:.1f} GB/s",
                                 device->description(), rates.unit, rates.flops * 1e-9, rates.bytes * 1e-9);
  if (machine.target.backend->kind() == "a CPU" && threads > 1)
    text += fmt::format(", core-to-core round trip {:.0f} ns", measure_core_round_trip() * 1e9);
  return text + "\n";
}

/// Seconds and work of all launches of one kernel.
struct Total {
  double seconds = 0, gflops = 0;
  std::int64_t launches = 0;
  int example = -1;
};

std::string kernels_text(const Program& program, const std::vector<LaunchTime>& times, int top, double peak) {
  std::map<int, Total> by_kernel;
  double all = 0;
  for (const LaunchTime& time : times) {
    Total& total = by_kernel[program.launches[time.launch].kernel];
    total.seconds += time.seconds;
    total.gflops += time.gflops;
    total.example = time.launch;
    total.launches += time.runs;
    all += time.seconds;
  }
  std::vector<Total> order;
  for (const auto& [kernel, total] : by_kernel) order.push_back(total);
  std::sort(order.begin(), order.end(), [](const Total& a, const Total& b) { return a.seconds > b.seconds; });
  if (order.size() > static_cast<std::size_t>(top)) order.resize(static_cast<std::size_t>(top));
  std::string text =
      fmt::format("{:>9} {:>6} {:>8} {:>9} {:>6}  what\n", "ms", "share", "launches", "GFLOP/s", "peak");
  for (const Total& total : order) {
    const Launch& launch = program.launches[total.example];
    const double rate = total.seconds > 0 ? total.gflops / total.seconds : 0;
    std::string names;
    for (const std::string& name : launch.names()) names += (names.empty() ? "" : ", ") + name;
    constexpr std::size_t widest = 60;
    if (names.size() > widest) names = names.substr(0, widest) + "...";
    text += fmt::format("{:>9.3f} {:>5.1f}% {:>8} {:>9} {:>6}  {} at {}\n", total.seconds * 1e3,
                        100 * total.seconds / std::max(all, 1e-12), total.launches,
                        rate > 0 ? fmt::format("{:.1f}", rate) : "",
                        rate > 0 ? fmt::format("{:.0f}%", 1e11 * rate / peak) : "", names, launch.loc.to_string());
  }
  return text;
}

void bench_graph(const BenchOptions& options, int threads, double peak) {
  LoadedModel model = load_model(options.file, options.source);
  model.graph = with_precision(model.graph, options.precision);
  auto [graph, executable, inputs, free_dims] = prepare(std::move(model), options.arguments,
                                                        {.threads = threads,
                                                         .lower = options.lower,
                                                         .target = options.target,
                                                         .memory_budget = options.memory_budget,
                                                         .tune = options.tune});
  const CompileSummary& summary = executable.summary();
  const MemoryPlan plan = memory_plan_of(executable, executable.bind(inputs, free_dims));
  std::string text = fmt::format(
      "graph @{}: {} ops, {} kernels in {} launches; compiled {} in {:.2f} s, {} from the cache; arena {}, arguments "
      "{}{}\n",
      visible(graph.name), summary.ops, summary.kernels, summary.launches, summary.compiled,
      summary.pass_seconds + summary.lower_seconds + summary.codegen_seconds, summary.from_cache,
      format_bytes(plan.arena_bytes), format_bytes(plan.argument_bytes), kept_text(plan));
  executable.run(inputs, free_dims);
  std::vector<double> seconds;
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    executable.run(inputs, free_dims);
    seconds.push_back(seconds_since(start));
  }
  std::vector<LaunchTime> times;
  executable.run_traced(inputs, times, free_dims);
  double gflops = 0;
  for (const LaunchTime& time : times) gflops += time.gflops;
  const double typical = median(seconds);
  text += fmt::format(
      "one run: median {:.3f} ms, best {:.3f} ms of {}; {:.3f} GFLOP in products and sums, {:.1f} GFLOP/s, {:.0f}% "
      "of peak\n\n",
      typical * 1e3, *std::min_element(seconds.begin(), seconds.end()) * 1e3, options.repeat, gflops,
      gflops / typical, 1e11 * gflops / typical / peak);
  write_text("-", text + kernels_text(program_of(executable), times, options.top, peak));
}

/// Throws UserError [usage] for an option that has no effect on what is measured.
void require_effects(const CLI::App& command, const BenchOptions& options) {
  std::set<std::string> effective{"--threads"};
  std::string_view on = "the table of ops and steps of this machine", hint = "leave it out, or give a FILE";
  if (options.machine) {
    effective.insert({"--machine", "--target"});
    on = "--machine", hint = "leave it out";
  } else if (options.file.empty()) {
    effective.insert({"--only", "--full"});
  } else {
    for (const CLI::Option* option : command.get_options()) effective.insert(option->get_name());
    for (const char* option : {"--only", "--full"}) effective.erase(option);
    on = "the runs of a graph", hint = "leave it out";
  }
  require_effective(command, effective, on, hint);
}

void run(const BenchOptions& options) {
  const int threads = options.threads > 0 ? options.threads : usable_cpus();
  double peak = 0;
  write_text("-", peak_text(options.target, threads, peak));
  if (options.machine) return;
  if (!options.file.empty())
    bench_graph(options, threads, peak);
  else
    bench::print_table({.threads = threads, .full = options.full, .groups = options.only});
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure the speed of Lathe on this machine, or of the runs and kernels of a graph");
  CLI::Option* file = command->add_option(
      "FILE", options->file,
      "IR text, ONNX or .pt2 file, or model directory (default: measure a table of ops and training steps)");
  for (CLI::Option* option : add_source_options(*command, options->source)) option->needs(file);
  add_argument_options(*command, options->arguments);
  add_lower_options(*command, options->lower);
  add_packed_weights(*command, options->lower);
  add_target_option(*command, options->target);
  add_precision_option(*command, options->precision);
  add_memory_budget(*command, options->memory_budget)->needs(file);
  add_tune(*command, options->tune)->needs(file);
  add_threads_option(*command, options->threads);
  between(command->add_option("--repeat", options->repeat, "Number of timed runs"), 1, 1'000'000)
      ->capture_default_str();
  between(command->add_option("--top", options->top, "Number of kernels to list"), 0, 100000)->capture_default_str();
  command->add_option("--only", options->only, "Parts of the table to measure, without FILE (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(bench::table_groups()));
  command->add_flag("--full", options->full, "Also measure attention over long sequences");
  command->add_flag("--machine", options->machine, "Measure only the peak rates of the machine");
  command->footer(
      "Arguments that no file contains are generated.\n"
      "Example: lathe bench step.lathe --dim B=4,T=64");
  command->callback([options, command] {
    require_effects(*command, *options);
    run(*options);
  });
}

}  // namespace lathe::tools
