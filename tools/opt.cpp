#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/tensor/printer.h"
#include "passes/pipeline.h"
#include "passes/transforms/known_sizes.h"
#include "passes/transforms/mixed_precision.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct OptOptions {
  std::string file, output = "-", passes, stop_after, reproducer;
  std::vector<std::string> disable, dims;
  std::optional<RowChunks> chunks;
  bool list = false, times = false, no_locations = false;
};

std::string list_passes() {
  std::string text = "the default pipeline, in order:\n";
  for (const ir::Pass& pass : ir::default_pipeline()) text += fmt::format("  {:<20} {}\n", pass.name, pass.doc);
  text += "every pass for --passes:\n";
  ir::Pipeline every = ir::all_passes();
  for (ir::Pass& pass : ir::mode_passes()) every.push_back(std::move(pass));
  for (const ir::Pass& pass : every) text += fmt::format("  {:<20} {}\n", pass.name, pass.doc);
  return text;
}

void run(const OptOptions& options) {
  if (options.list) return write_text("-", list_passes());
  const ir::Graph given = load_graph(options.file);
  const ir::Graph graph = ir::with_sizes(given, given_dims(given, options.dims));
  const RowChunks chunks = options.chunks.value_or(RowChunks{});
  const ir::Pipeline pipeline =
      options.passes.empty() ? ir::default_pipeline(chunks) : ir::parse_pipeline(options.passes, chunks);
  const auto result = ir::run_pipeline(graph, pipeline,
                                       {.dump_after = {},
                                        .disable = options.disable,
                                        .stop_after = options.stop_after,
                                        .reproducer = options.reproducer});
  write_text(options.output, ir::print(result.graph, {.locations = !options.no_locations}));
  if (options.times) print_error(ir::to_string(result.runs));
}

}  // namespace

void add_opt(CLI::App& app) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Run passes on a graph and print the result");
  auto* file = command->add_option("FILE", options->file, "IR text");
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_option("-p,--passes", options->passes,
                      "Passes to run, in order: canonicalize,cse (default: the whole pipeline)");
  command->add_option("--disable", options->disable, "Passes of the pipeline to leave out")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--dim", options->dims, "Make an unknown dim a number, as NAME=SIZE")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_chunk_option(*command, options->chunks);
  command->add_option("--stop-after", options->stop_after, "The last pass to run");
  command->add_option("--reproducer", options->reproducer, "Where to write the graph that made a pass fail");
  command->add_flag("--no-locations", options->no_locations, "Leave out loc(...)");
  command->add_flag("--times", options->times, "Tell on standard error what each pass took and did");
  auto* list = command->add_flag("--list", options->list, "List the passes");
  file->excludes(list);
  command->footer("Example: lathe opt mha.lathe --passes canonicalize,cse,dce --times");
  command->callback([options, command] {
    if (!options->list && options->file.empty()) throw CLI::RequiredError("FILE");
    static_cast<void>(command);
    run(*options);
  });
}

}  // namespace lathe::tools
