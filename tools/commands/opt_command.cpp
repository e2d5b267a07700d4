#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ir/support/error.h"
#include "ir/tensor/text/printer.h"
#include "passes/transforms/known_sizes.h"
#include "runtime/target_machine.h"
#include "tools/commands/commands.h"
#include "tools/files.h"
#include "tools/options/arguments.h"
#include "tools/stages.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct OptOptions {
  std::string file, output = "-", passes, target, stop_after, reproducer;
  std::vector<std::string> disable, dims;
  std::optional<RowChunks> chunks;
  bool list = false, times = false, no_locations = false;
};

std::string line_of(std::string_view name, std::string_view doc) { return fmt::format("  {:<20} {}\n", name, doc); }

/// Everything that compilation does, in order, then the passes that it does not run.
std::string list_stages(const std::string& target_name) {
  const Target target = Target::named(target_name);
  const ir::Pipeline pipeline = compile_pipeline(machine_of(target));
  const std::vector<std::string> names = ir::stage_names(pipeline);
  const std::size_t common = ir::default_pipeline().size();
  std::string text = "the stages of compilation, in order; dump --after STAGE shows each\nwhere asked for, first:\n";
  const ir::Pipeline first = whole_graph_pipeline(true, [](const ir::Graph& graph) { return graph; });
  for (const ir::Pass& pass : first) text += line_of(pass.name, pass.doc);
  text += "for every target:\n";
  for (std::size_t i = 0; i < pipeline.size(); ++i) {
    if (i == common) text += fmt::format("for the target {} (--target names another):\n", target_name);
    text += line_of(names[i], pipeline[i].doc);
  }
  text += "from here on no passes:\n";
  for (const Stage& stage : stages_after_passes(target)) text += line_of(stage.name, stage.doc);
  text += "passes that compilation does not run, for --passes:\n";
  for (const ir::Pipeline& more : {ir::mode_passes(), ir::all_passes()})
    for (const ir::Pass& pass : more)
      if (std::ranges::find(names, pass.name) == names.end() && pass.name != first[0].name)
        text += line_of(pass.name, pass.doc);
  return text;
}

ir::Pipeline pipeline_of(const OptOptions& options) {
  const RowChunks chunks = options.chunks.value_or(RowChunks{});
  if (!options.passes.empty()) return ir::parse_pipeline(options.passes, chunks);
  if (options.target.empty()) return ir::default_pipeline(chunks);
  return compile_pipeline(machine_of(Target::named(options.target)), {.chunks = options.chunks});
}

/// Stages behind the passes give no graph that could be printed.
void require_pass(const std::string& stage, const std::string& target) {
  const std::vector<Stage> later = stages_after_passes(Target::named(target));
  if (std::ranges::find(later, stage, &Stage::name) != later.end())
    throw UserError(fmt::format("the stage {} comes after all passes", stage), "pass_name",
                    fmt::format("lathe dump --after {} shows what it makes", stage));
}

void run(const OptOptions& options) {
  const std::string target = options.target.empty() ? "host" : options.target;
  if (options.list) return write_text("-", list_stages(target));
  require_pass(options.stop_after, target);
  const ir::Graph given = load_graph(options.file);
  const ir::Graph graph = ir::with_sizes(given, given_dims(given, options.dims));
  const auto result = ir::run_pipeline(graph, pipeline_of(options),
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
                      "Passes to run, in order: canonicalize,cse (default: those for every target)");
  command->add_option("--target", options->target,
                      "Go on with the passes of a target: host, x86-64-v3, cuda, cuda:sm_90a and the like");
  command->add_option("--disable", options->disable, "Passes of the pipeline to leave out")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--dim", options->dims, "Make an unknown dim a number, as NAME=SIZE")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_chunk_option(*command, options->chunks);
  command->add_option("--stop-after", options->stop_after,
                      "The last pass to run; of one that runs twice, canonicalize.2 is the second time");
  command->add_option("--reproducer", options->reproducer, "Where to write the graph that made a pass fail");
  command->add_flag("--no-locations", options->no_locations, "Leave out loc(...)");
  command->add_flag("--times", options->times, "Tell on standard error what each pass took and did");
  auto* list = command->add_flag("--list", options->list, "List the stages of compilation");
  file->excludes(list);
  command->footer(
      "Examples:\n"
      "  lathe opt mha.lathe --passes canonicalize,cse,dce --times\n"
      "  lathe opt --list --target cuda:sm_90a");
  command->callback([options, command] {
    if (!options->list && options->file.empty()) throw CLI::RequiredError("FILE");
    static_cast<void>(command);
    run(*options);
  });
}

}  // namespace lathe::tools
