#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/support/error.h"
#include "ir/tensor/explain.h"
#include "ir/tensor/printer.h"
#include "passes/pipeline.h"
#include "tools/commands.h"
#include "tools/drawing.h"
#include "tools/files.h"

namespace lathe::tools {

namespace {

struct Options {
  std::string file, output = "-", after;
  bool short_form = false, html = false, dot = false, no_locations = false, strides = false;
};

std::string render(const ir::Graph& graph, const Options& options) {
  if (options.html) return html_page(graph);
  if (options.dot) return dot_text(graph);
  if (options.short_form) return ir::print_short(graph);
  return ir::print(graph, {.locations = !options.no_locations, .strides = options.strides});
}

/// The graph as given, after one pass, or after each.
void run(const Options& options) {
  const ir::Graph graph = load_graph(options.file);
  if (options.after.empty()) return write_text(options.output, render(graph, options));
  const bool all = options.after == "all";
  if (all && (options.html || options.dot))
    throw UserError("--after all makes many graphs, --html and --dot draw one", "usage",
                    "name the pass to draw after");
  std::string text;
  ir::PipelineOptions pipeline;
  if (!all && options.after != "input") pipeline.stop_after = options.after;
  pipeline.dump_after = [&](std::string_view pass, const ir::Graph& now) {
    if (all)
      text += fmt::format("{}// after {}\n{}", text.empty() ? "" : "\n", pass, render(now, options));
    else if (pass == options.after)
      text = render(now, options);
  };
  ir::run_pipeline(graph, ir::default_pipeline(), pipeline);
  write_text(options.output, text);
}

}  // namespace

void add_dump(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("dump", "Print a graph: as text, as a page for the browser, for Graphviz");
  command->add_option("FILE", options->file, "IR text")->required();
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_option("--after", options->after, "Show it after this pass of the pipeline, or after each: all");
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
      "  lathe dump model.lathe --html -o model.html\n"
      "  lathe dump model.lathe --dot | dot -Tsvg > model.svg");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
