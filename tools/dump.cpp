#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/support/error.h"
#include "ir/tensor/explain.h"
#include "ir/tensor/printer.h"
#include "passes/pipeline.h"
#include "tools/commands.h"
#include "tools/drawing.h"
#include "tools/files.h"
#include "tools/stages.h"

namespace lathe::tools {

namespace {

struct DumpOptions {
  std::string file, output = "-", after, cpu = "host";
  bool short_form = false, html = false, dot = false, no_locations = false, strides = false;
};

std::string render(const ir::Graph& graph, const DumpOptions& options) {
  if (options.html) return html_page(graph);
  if (options.dot) return dot_text(graph);
  if (options.short_form) return ir::print_short(graph);
  return ir::print(graph, {.locations = !options.no_locations, .strides = options.strides});
}

std::string after_all(const ir::Graph& graph, const DumpOptions& options) {
  std::string text;
  ir::PipelineOptions pipeline;
  pipeline.dump_after = [&](std::string_view pass, const ir::Graph& now) {
    text += fmt::format("{}// after {}\n{}", text.empty() ? "" : "\n", pass, render(now, options));
  };
  const ir::Graph last = ir::run_pipeline(graph, ir::default_pipeline(), pipeline).graph;
  for (const std::string_view stage : {"kernels", "llvm", "asm"})
    text += fmt::format("\n// after {}\n{}", stage, code_text(last, stage, options.cpu));
  return text;
}

/// The graph as given, or after the passes up to a stage.
std::string after(const ir::Graph& graph, const DumpOptions& options) {
  if (options.after.empty() || options.after == "input") return render(graph, options);
  const bool all = options.after == "all", code = is_code_stage(options.after);
  if ((all || code) && (options.html || options.dot))
    throw UserError(fmt::format("--after {} is no single graph to draw", options.after), "usage",
                    "name the pass to draw after; lathe opt --list tells them");
  if (all) return after_all(graph, options);
  ir::PipelineOptions pipeline;
  if (!code) pipeline.stop_after = options.after;
  const ir::Graph result = ir::run_pipeline(graph, ir::default_pipeline(), pipeline).graph;
  return code ? code_text(result, options.after, options.cpu) : render(result, options);
}

}  // namespace

void add_dump(CLI::App& app) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = app.add_subcommand("dump", "Print a graph: as text, as a page for the browser, for Graphviz");
  command->add_option("FILE", options->file, "IR text")->required();
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_option("--after", options->after,
                      "Show it after this pass of the pipeline, or as kernels, llvm, asm; all shows each stage");
  command
      ->add_option("--cpu", options->cpu,
                   "For kernels, llvm, asm: host, x86-64-v2, x86-64-v3 or x86-64-v4, and features such as ,-amx-bf16")
      ->capture_default_str();
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
      "  lathe dump model.lathe --after asm --cpu x86-64-v3\n"
      "  lathe dump model.lathe --html -o model.html\n"
      "  lathe dump model.lathe --dot | dot -Tsvg > model.svg");
  command->callback([options] { write_text(options->output, after(load_graph(options->file), *options)); });
}

}  // namespace lathe::tools
