#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ir/support/error.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compilation.h"
#include "runtime/target.h"
#include "tools/commands/commands.h"
#include "tools/inputs/files.h"
#include "tools/list_stages.h"
#include "tools/options/arguments.h"
#include "tools/options/graph_options.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct OptOptions {
  GraphSource source;
  std::string file, output = "-", passes, target, stop_after, reproducer;
  std::vector<std::string> disable;
  PassOptions how;
  bool list = false, times = false, no_locations = false;
};

ir::Pipeline pipeline_of(const OptOptions& options, const DimBindings& sizes) {
  using Part = Stage::Part;
  const CompileRequest request = options.how.request(sizes);
  if (options.passes.empty() && options.target.empty()) return passes_of(request, Machine{}, Part::every_target);
  if (options.passes.empty()) return passes_of(request, machine_of(Target::named(options.target)), Part::target);
  ir::Pipeline passes = passes_of(request, Machine{}, Part::whole_graph);
  for (ir::Pass& pass : ir::parse_pipeline(options.passes, request.lower.chunks.value_or(RowChunks{})))
    passes.push_back(std::move(pass));
  return passes;
}

/// Checks that a stage named by an option is among those that run.
void require_among(const std::vector<std::string>& running, const std::string& stage, const OptOptions& options) {
  if (std::ranges::find(running, stage) != running.end()) return;
  for (const Stage& each : stages_of(machine_of(Target::named(options.target.empty() ? "host" : options.target))))
    if (each.name == stage && !each.pass)
      throw UserError(fmt::format("the stage {} runs after all passes", stage), "pass_name",
                      fmt::format("lathe dump --after {} prints its result", stage));
  if (!options.passes.empty())
    throw UserError(fmt::format("the stage {} is not in --passes {}", stage, options.passes), "pass_name",
                    "add it, or leave out --passes to run the stages that lathe opt --list lists");
  throw_missing_stage(stage, options.target);
}

void run(const OptOptions& options) {
  if (options.list) return write_text("-", list_stages(options.target.empty() ? "host" : options.target));
  const ir::Graph graph = load_graph(options.file, options.source);
  const DimBindings sizes = given_dims(graph, options.how.dims);
  require_chunk_sizes(options.how.graph.lower, graph, sizes);
  ir::Pipeline passes = pipeline_of(options, sizes);
  std::vector<std::string> names;
  for (const ir::Pass& pass : passes) names.push_back(pass.name);
  for (const std::string& pass : options.disable) require_among(names, pass, options);
  if (!options.stop_after.empty()) {
    require_among(ir::stage_names(passes), options.stop_after, options);
    passes = ir::up_to(options.stop_after, std::move(passes));
  }
  const auto result = ir::run_pipeline(graph, passes, {.disable = options.disable, .reproducer = options.reproducer});
  write_text(options.output, ir::print(result.graph, {.locations = !options.no_locations}));
  if (options.times) print_error(to_string(result.runs));
}

}  // namespace

void add_opt(CLI::App& app) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Run passes on a graph and print the result");
  auto* file = command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory");
  add_source_options(*command, options->source);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->add_option("-p,--passes", options->passes,
                      "Passes to run, in order, such as canonicalize,cse (default: the passes for every target)");
  command->add_option("--target", options->target,
                      "Also run the passes of this target, such as host, x86-64-v3, cuda or cuda:sm_90a");
  command->add_option("--disable", options->disable, "Passes to skip")->allow_extra_args(false)->delimiter(',');
  add_pass_options(*command, options->how, "Replace an unknown dim by its size, as NAME=SIZE (repeatable)");
  command->add_option("--stop-after", options->stop_after,
                      "Last pass to run; canonicalize.2 is the second run of canonicalize (default: the last pass)");
  command->add_option("--reproducer", options->reproducer, "File for the graph that made a pass fail");
  command->add_flag("--no-locations", options->no_locations, "Omit loc(...)");
  command->add_flag("--times", options->times, "Print the time and the changes of each pass to standard error");
  auto* list = command->add_flag("--list", options->list, "List the stages of compilation");
  file->excludes(list);
  command->footer(
      "Examples:\n"
      "  lathe opt mha.lathe --passes canonicalize,cse,dce --times\n"
      "  lathe opt step.lathe --mesh data=2 --split B:data --stop-after shard\n"
      "  lathe opt --list --target cuda:sm_90a");
  command->callback([options, command] {
    if (!options->list && options->file.empty()) throw CLI::RequiredError("FILE");
    static_cast<void>(command);
    run(*options);
  });
}

}  // namespace lathe::tools
