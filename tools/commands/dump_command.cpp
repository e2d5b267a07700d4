#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/text/printer.h"
#include "passes/fusion/print_regions.h"
#include "runtime/target_machine.h"
#include "tools/commands/commands.h"
#include "tools/files.h"
#include "tools/options/arguments.h"
#include "tools/options/division.h"
#include "tools/options/graph_options.h"
#include "tools/options/memory_budget.h"
#include "tools/page/drawing.h"
#include "tools/stages.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct DumpOptions {
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

/// A graph on its way through compilation.
class Dump {
 public:
  Dump(const ir::Graph& graph, const DumpOptions& options)
      : graph_(graph),
        options_(options),
        how_{.target = Target::named(options.target), .dims = given_dims(graph, options.how.dims)},
        machine_(machine_of(how_.target)),
        lower_(options.how.graph.lower),
        passes_(options.how.whole_graph_passes(sizes_for_chunks(lower_, how_.dims))) {
    how_.dims = sizes_on_process(how_.dims, options.how.division);
    lower_.memory = memory_budget(options.memory_budget, how_.dims);
    if (lower_.memory) require_budget_kept(machine_);
    for (ir::Pass& pass : compile_pipeline(machine_, lower_)) passes_.push_back(std::move(pass));
  }

  std::string after(const std::string& stage) {
    const auto later = stages_after_passes(how_.target);
    const bool is_later = std::ranges::find(later, stage, &Stage::name) != later.end();
    if ((options_.html || options_.dot) && (stage == "all" || (is_later && stage != "rematerialize")))
      throw UserError(fmt::format("--after {} is no single graph to draw", stage), "usage",
                      "name the pass to draw after; lathe opt --list tells them");
    if (stage == "all") return after_all(later);
    const std::vector<std::string> names = ir::stage_names(passes_);
    const bool runs =
        is_later ? stage != "rematerialize" || lower_.memory : std::ranges::find(names, stage) != names.end();
    if (!runs) throw_missing_stage(stage, options_.target);
    if (!is_later) return render(passed({.stop_after = stage}), options_);
    if (stage == "fuse" && !lower_.memory) return regions();
    return text_of(lowered({}), stage);
  }

  /// The stages that ran.
  const std::vector<ir::PassRun>& runs() const { return runs_; }

 private:
  void add(const std::vector<ir::PassRun>& runs) { runs_.insert(runs_.end(), runs.begin(), runs.end()); }

  ir::Graph passed(const ir::PipelineOptions& pipeline) {
    ir::PipelineResult result = ir::run_pipeline(graph_, passes_, pipeline);
    add(result.runs);
    return std::move(result.graph);
  }

  /// Without a budget no kernel is needed to know them.
  std::string regions() {
    const Fused fused = fuse_regions(passed({}), machine_, lower_);
    add(fused.stages);
    return print_regions(fused.regions, fused.graph);
  }

  Lowered lowered(const ir::PipelineOptions& pipeline) {
    Lowered result = lower_prepared(passed(pipeline), machine_, lower_);
    add(result.stages);
    return result;
  }

  std::string text_of(const Lowered& lowered, std::string_view stage) {
    return stage == "rematerialize" ? render(lowered.graph, options_) : stage_text(lowered, stage, how_, runs_);
  }

  std::string after_all(const std::vector<Stage>& later) {
    std::string text;
    ir::PipelineOptions pipeline;
    pipeline.dump_after = [&](std::string_view pass, const ir::Graph& now) {
      text += fmt::format("{}// after {}\n{}", text.empty() ? "" : "\n", pass, render(now, options_));
    };
    const Lowered result = lowered(pipeline);
    const bool has_sizes = ir::unbound_dims(result.graph, how_.dims).empty();
    for (const Stage& stage : later) {
      if (stage.name == "rematerialize" && !lower_.memory) continue;
      if (stage.name == "memory-plan" && !has_sizes) continue;
      text += fmt::format("\n// after {}\n{}", stage.name, text_of(result, stage.name));
    }
    return text;
  }

  const ir::Graph& graph_;
  const DumpOptions& options_;
  StageOptions how_;
  Machine machine_;
  LowerOptions lower_;
  ir::Pipeline passes_;
  std::vector<ir::PassRun> runs_;
};

std::string dump(const ir::Graph& graph, const DumpOptions& options) {
  const bool as_given = options.after.empty() || options.after == "input";
  if (as_given) return render(graph, options);
  Dump stages(graph, options);
  std::string text = stages.after(options.after);
  if (options.times) print_error(ir::to_string(stages.runs()));
  return text;
}

}  // namespace

void add_dump(CLI::App& app) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = app.add_subcommand("dump", "Print a graph: as text, as a page for the browser, for Graphviz");
  command->add_option("FILE", options->file, "IR text")->required();
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_option("--after", options->after,
                      "Show it after this stage of compilation (lathe opt --list tells them); all shows each");
  command
      ->add_option(
          "--target,--cpu", options->target,
          fmt::format("What it is compiled for: {}, with features such as ,-amx-bf16; cuda, or cuda: and the "
                      "exact chip",
                      list_of(codegen::TargetCpu::names())))
      ->capture_default_str();
  add_pass_options(*command, options->how,
                   "For memory-plan, --memory-budget and --chunk-rows: the size of a dim, as NAME=SIZE");
  add_memory_budget(*command, options->memory_budget);
  command->add_flag("--times", options->times, "Tell on standard error what each stage took and did");
  auto* short_form = command->add_flag("--short", options->short_form, "No locations; of repeated layers the first");
  auto* html =
      command->add_flag("--html", options->html, "One self-contained page: shapes on edges, source lines, search");
  auto* dot = command->add_flag("--dot", options->dot, "Graphviz");
  command->add_flag("--no-locations", options->no_locations, "Leave out loc(...)");
  command->add_flag("--strides", options->strides, "Show the strides of strided values");
  html->excludes(dot)->excludes(short_form);
  dot->excludes(short_form);
  command->footer(
      "Examples:\n"
      "  lathe dump model.lathe --short\n"
      "  lathe dump model.lathe --after all > stages.txt\n"
      "  lathe dump model.lathe --after fuse --times\n"
      "  lathe dump model.lathe --after fuse --precision bf16 --no-fused-attention\n"
      "  lathe dump model.lathe --after exchanges --mesh data=2 --split B:data\n"
      "  lathe dump model.lathe --after memory-plan --dim B=4,T=64\n"
      "  lathe dump model.lathe --after asm --target x86-64-v3\n"
      "  lathe dump model.lathe --after cuda --target cuda:sm_90a\n"
      "  lathe dump model.lathe --html -o model.html\n"
      "  lathe dump model.lathe --dot | dot -Tsvg > model.svg");
  command->callback([options] { write_text(options->output, dump(load_graph(options->file), *options)); });
}

}  // namespace lathe::tools
