#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "codegen/llvm/target_cpu.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compilation.h"
#include "runtime/backend/backend.h"
#include "runtime/host/seconds.h"
#include "runtime/sharding.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
#include "tools/inputs/files.h"
#include "tools/list_stages.h"
#include "tools/options/arguments.h"
#include "tools/options/division.h"
#include "tools/options/graph_options.h"
#include "tools/options/memory_budget.h"
#include "tools/page/drawing.h"
#include "tools/page/memory_svg.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct DumpOptions {
  GraphSource source;
  std::string file, output = "-", after, target = "host", memory_budget;
  PassOptions how;
  bool times = false;
  bool short_form = false, html = false, dot = false, no_locations = false, strides = false;
};

std::string render(const ir::Graph& graph, const DumpOptions& options) {
  if (options.html) return html_page(graph);
  if (options.dot) return dot_text(graph);
  if (options.short_form) return ir::print_short(graph);
  return ir::print(graph, {.locations = !options.no_locations, .strides = options.strides});
}

/// Compiles a graph up to a stage and prints its form there.
class Dump {
 public:
  Dump(const ir::Graph& graph, const DumpOptions& options) : options_(options) {
    const Machine machine = machine_of(Target::named(options.target));
    DimBindings dims = given_dims(graph, options.how.dims);
    require_chunk_sizes(options.how.graph.lower, graph, dims);
    CompileRequest request = options.how.request(sizes_for_chunks(options.how.graph.lower, dims));
    if (const Division& division = options.how.division; division.is_given())
      dims = sizes_on_process(std::move(dims), division.splits(), division.mesh());
    request.lower.memory = memory_budget(options.memory_budget, dims);
    request.plan_sizes = dims;
    stages_ = stages_of(machine);
    now_ = begin_compilation(graph, machine, std::move(request));
  }

  std::string after(const std::string& label) {
    const std::size_t found = find_stage(stages_, label);
    const bool exists = found < stages_.size();
    const bool has_page = options_.html && (label == "fuse" || label == "memory-plan");
    if ((options_.html || options_.dot) && !has_page && (label == "all" || (exists && !is_graph(stages_[found]))))
      throw UserError(
          fmt::format("--after {} does not give a single graph to draw", label), "usage",
          "give --after the name of a pass, or with --html fuse or memory-plan; lathe opt --list lists them");
    if (exists && !is_graph(stages_[found]) && (options_.short_form || options_.no_locations || options_.strides))
      throw UserError(fmt::format("{} has no effect on --after {}, which prints no graph",
                                  options_.short_form ? "--short"
                                  : options_.strides  ? "--strides"
                                                      : "--no-locations",
                                  label),
                      "usage", "leave it out");
    if (label == "driver") now_.request.lower.join_launches = false;  // like emit_library()
    if (label == "all") return after_all();
    if (!exists || !is_enabled(stages_[found], now_.request)) throw_missing_stage(label, options_.target);
    if (stages_[found].needs_sizes) require_sizes();
    return text_after(stages_[found]);
  }

  /// Returns the stages that ran.
  const std::vector<PassRun>& runs() const { return now_.runs; }

 private:
  static bool is_graph(const Stage& stage) {
    return stage.pass || stage.name == "checkpoint-loops" || stage.name == "rematerialize";
  }

  /// Runs the remaining stages up to this one.
  std::string text_after(const Stage& stage) {
    const std::string& label = stage.label;
    const bool is_code = stage.part == Stage::Part::code;
    run_until(now_, is_code ? "collectives" : label);
    if (is_graph(stage)) return render(now_.graph, options_);
    if (options_.html)
      return html_page(now_.graph, {.regions = &now_.regions,
                                    .memory = now_.plan ? memory_svg(now_.program, *now_.plan) : std::string()});
    const auto start = std::chrono::steady_clock::now();
    std::string text = print_stage(now_, label);
    if (is_code)
      now_.runs.push_back({label, seconds_since(start), now_.graph.size(), now_.graph.size(),
                           fmt::format("code of {} kernels", now_.program.kernels.size())});
    return text;
  }

  void require_sizes() {
    run_through(now_, Stage::Part::target);
    require_plan_sizes(now_);
  }

  std::string after_all() {
    std::string text;
    PipelineOptions pipeline;
    pipeline.dump_after = [&](std::string_view pass, const ir::Graph& graph) {
      text += fmt::format("{}// after {}\n{}", text.empty() ? "" : "\n", pass, render(graph, options_));
    };
    run_through(now_, Stage::Part::target, pipeline);
    const bool has_sizes = ir::unbound_dims(now_.graph, now_.request.plan_sizes).empty();
    for (std::size_t i = now_.next; i < stages_.size(); ++i)
      if (is_enabled(stages_[i], now_.request) && (has_sizes || !stages_[i].needs_sizes))
        text += fmt::format("\n// after {}\n{}", stages_[i].label, text_after(stages_[i]));
    return text;
  }

  const DumpOptions& options_;
  std::vector<Stage> stages_;
  Compilation now_;
};

bool is_as_given(const DumpOptions& options) { return options.after.empty() || options.after == "input"; }

/// Throws UserError [usage] for options of compilation without a stage, and for options of the text of graphs in
/// other forms.
void require_effects(const CLI::App& command, const DumpOptions& options) {
  if (is_as_given(options))
    require_effective(command,
                      {"FILE", "--ops", "--fix-dim", "--output", "--after", "--short", "--html", "--dot",
                       "--no-locations", "--strides"},
                      "the graph of the file", "give --after STAGE; lathe opt --list lists the stages");
  const std::string_view form = options.html         ? "an HTML page"
                                : options.dot        ? "Graphviz DOT"
                                : options.short_form ? "--short"
                                                     : "";
  if (!form.empty()) refuse_options(command, {"--strides", "--no-locations"}, form);
}

std::string dump(const ir::Graph& graph, const DumpOptions& options) {
  if (is_as_given(options)) return render(graph, options);
  Dump stages(graph, options);
  std::string text = stages.after(options.after);
  if (options.times) print_error(to_string(stages.runs()));
  return text;
}

}  // namespace

void add_dump(CLI::App& app) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = app.add_subcommand("dump", "Print a graph as text, as an HTML page or for Graphviz");
  command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_source_options(*command, options->source);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->add_option("--after", options->after,
                      "Print the graph after this stage of compilation, or after each stage with all; lathe opt "
                      "--list lists the stages");
  command
      ->add_option("--target,--cpu", options->target,
                   fmt::format("Target to compile for: {}, cuda, or a GPU architecture such as cuda:sm_90a; "
                               "host,-amx-bf16 disables AMX",
                               list_of(codegen::TargetCpu::names())))
      ->capture_default_str();
  add_pass_options(*command, options->how,
                   "Size of a dim for memory-plan, --memory-budget and --chunk-rows, as NAME=SIZE (repeatable)");
  add_memory_budget(*command, options->memory_budget);
  command->add_flag("--times", options->times, "Print the time and the changes of each stage to standard error");
  auto* short_form = command->add_flag("--short", options->short_form,
                                       "Omit locations, and print only the first of repeated layers");
  auto* html = command->add_flag(
      "--html", options->html,
      "Write a self-contained HTML page: shapes on edges, source lines, search; with --after fuse its "
      "fused regions, with --after memory-plan also the memory plan");
  auto* dot = command->add_flag("--dot", options->dot, "Write Graphviz DOT");
  command->add_flag("--no-locations", options->no_locations, "Omit loc(...)");
  command->add_flag("--strides", options->strides, "Print the strides of strided values");
  html->excludes(dot)->excludes(short_form);
  dot->excludes(short_form);
  command->footer(
      "Examples:\n"
      "  lathe dump model.lathe --short\n"
      "  lathe dump model.lathe --after all > stages.txt\n"
      "  lathe dump model.lathe --after fuse --times\n"
      "  lathe dump model.lathe --after fuse --precision bf16 --no-fused-attention\n"
      "  lathe dump model.lathe --after collectives --mesh data=2 --split B:data\n"
      "  lathe dump model.lathe --after memory-plan --dim B=4,T=64\n"
      "  lathe dump model.lathe --after asm --target x86-64-v3\n"
      "  lathe dump model.lathe --after cuda --target cuda:sm_90a\n"
      "  lathe dump model.lathe --html -o model.html\n"
      "  lathe dump model.lathe --after memory-plan --dim B=4,T=64 --html -o regions.html\n"
      "  lathe dump model.lathe --dot | dot -Tsvg > model.svg");
  command->callback([options, command] {
    require_effects(*command, *options);
    write_text(options->output, dump(load_graph(options->file, options->source), *options));
  });
}

}  // namespace lathe::tools
