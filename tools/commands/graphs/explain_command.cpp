#include "ir/tensor/explain/explain.h"

#include <CLI/CLI.hpp>

#include "ir/tensor/loop_views.h"
#include "passes/chunks/explain_chunks.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_attention.h"
#include "passes/explain/explain_memory.h"
#include "passes/fusion/attention/require_attention.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/backend/backend.h"
#include "runtime/host/host_cpu.h"
#include "runtime/target.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
#include "tools/inputs/files.h"
#include "tools/options/graph_options.h"
#include "tools/options/memory_budget.h"
#include "tools/options/number_option.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/page/memory_svg.h"
#include "tools/page/walkthrough_page.h"

namespace lathe::tools {

namespace {
struct ExplainOptions {
  GraphSource source;
  std::string file, output = "-", precision = "f32", memory_budget, target = "host", svg;
  std::vector<std::string> dims;
  int threads = 0;
  std::vector<std::string> inputs;
  std::uint64_t seed = 0;
  bool html = false, all = false, memory = false, fusion = false, require_fused = false, chunks = false;
  std::optional<RowChunks> row_chunks;
};

std::string chunks_text(const ir::Graph& from, const ExplainOptions& options) {
  const DimBindings sizes = given_dims(from, options.dims);
  const auto with_sizes = [&](const ir::Graph& each) { return ir::with_sizes(each, sizes); };
  const ir::Graph graph = with_sizes(ir::on_bodies(from, with_sizes));
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline({.on = false})).graph;
  return explain_row_chunks(passed, options.row_chunks.value_or(RowChunks{}));
}

/// Compiles the graph to kernels. Disables "require-attention", so that the report precedes its error.
Compilation compiled_for(const ir::Graph& graph, const Machine& machine, const LowerOptions& options) {
  Compilation now = begin_compilation(graph, machine, {.lower = options});
  PipelineOptions passes;
  if (options.attention == AttentionFusion::required) passes.disable = {"require-attention"};
  run_through(now, Stage::Part::target, passes);
  run_until(now, "collectives");
  return now;
}

std::optional<MemoryBudget> budget_of(const ExplainOptions& options, const DimBindings& dims) {
  std::optional<MemoryBudget> budget = memory_budget(options.memory_budget, dims);
  if (budget) budget->threads = options.threads > 0 ? options.threads : usable_cpus();
  return budget;
}

/// Plans the memory of a run, and draws it if a file is given.
std::string plan_text(const ir::Graph& graph, const ExplainOptions& options) {
  const DimBindings dims = given_dims(graph, options.dims);
  LowerOptions lower{.memory = budget_of(options, dims)};
  if (options.row_chunks) lower.chunks = options.row_chunks;
  Compilation now = begin_compilation(graph, machine_of(Target::named(options.target)),
                                      {.sizes = sizes_for_chunks(lower, dims), .lower = lower, .plan_sizes = dims});
  run_through(now, Stage::Part::target);
  require_plan_sizes(now);
  run_until(now, "memory-plan");
  if (!options.svg.empty()) write_text(options.svg, memory_svg(now.program, *now.plan));
  constexpr int most_values = 30;
  return describe(*now.plan, now.program, most_values);
}

std::string memory_text(const ir::Graph& from, const ExplainOptions& options) {
  const Machine machine = machine_of(Target::host());
  return explain_memory(from, machine, *budget_of(options, given_dims(from, options.dims)));
}

/// Steps through the graph with the numbers of one run.
std::string html_text(const ir::Graph& graph, const ExplainOptions& options) {
  const Arguments arguments = load_arguments(
      graph, {.files = options.inputs, .dims = options.dims, .seed = options.seed, .random = true}, false);
  return walkthrough_page(graph, arguments.tensors, {.round = true, .dims = arguments.dims});
}

void tell_fusion(const ir::Graph& graph, const ExplainOptions& options) {
  const Machine machine = machine_of(Target::named(options.target));
  LowerOptions lower;
  if (options.require_fused) lower.attention = AttentionFusion::required;
  const Compilation lowered = compiled_for(graph, machine, lower);
  write_text(options.output, explain_fusion(lowered, machine.info));
  if (options.require_fused) require_fused_attention(lowered.graph, {.decode = machine.fusion.attention_decode});
}

/// Throws UserError [usage] for an option that has no effect on what is printed.
void require_effects(const CLI::App& command, const ExplainOptions& options) {
  struct Kind {
    bool is_asked;
    std::string_view name;
    std::set<std::string> options;
  };
  const Kind kinds[] = {
      {options.html, "--html", {"--html", "--input", "--seed", "--dim"}},
      {options.memory,
       "--memory",
       {"--memory", "--svg", "--target", "--dim", "--chunk-rows", "--memory-budget", "--threads"}},
      {!options.memory_budget.empty(), "--memory-budget", {"--memory-budget", "--dim", "--threads"}},
      {options.chunks, "--chunks", {"--chunks", "--chunk-rows", "--dim"}},
      {options.fusion, "--fusion", {"--fusion", "--require-fused", "--target"}},
      {true, "the shapes of a graph", {"--all"}},
  };
  const Kind& kind = *std::ranges::find_if(kinds, &Kind::is_asked);
  std::set<std::string> effective{"FILE", "--ops", "--fix-dim", "--output", "--precision"};
  effective.insert(kind.options.begin(), kind.options.end());
  require_effective(command, effective, kind.name, "leave it out; lathe explain --help lists what it can print");
}

void explain(ExplainOptions& options, const CLI::App& command) {
  require_effects(command, options);
  const ir::Graph graph = with_precision(load_graph(options.file, options.source), options.precision);
  if (options.html) {
    if (has_weights(options.file)) options.inputs.insert(options.inputs.begin(), options.file);
    write_text(options.output, html_text(graph, options));
    return;
  }
  if (options.memory) {
    const std::string text = plan_text(graph, options);
    if (options.svg != "-") write_text(options.output, text);
    return;
  }
  if (!options.memory_budget.empty()) {
    write_text(options.output, memory_text(graph, options));
    return;
  }
  if (options.chunks) {
    write_text(options.output, chunks_text(graph, options));
    return;
  }
  if (options.fusion) {
    tell_fusion(graph, options);
    return;
  }
  write_text(options.output, ir::explain(graph, {.collapse_layers = !options.all}));
}

CLI::Option* add_html_options(CLI::App& command, ExplainOptions& options) {
  CLI::Option* html = command.add_flag("--html", options.html,
                                       "Write a page that steps through the values with the numbers of a small run");
  command
      .add_option(
          "-i,--input", options.inputs,
          "Arguments of --html by name, from a .safetensors file or a model directory (repeatable; others are "
          "random)")
      ->allow_extra_args(false)
      ->needs(html);
  seed(command.add_option("--seed", options.seed, "Seed of the random arguments of --html"))
      ->capture_default_str()
      ->needs(html);
  return html;
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Print the shape of each value and the reason for it");
  command->add_option("FILE", options->file, "IR text, ONNX or .pt2 file, or model directory")->required();
  add_source_options(*command, options->source);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  CLI::Option* all = command->add_flag("--all", options->all, "Print repeated layers in full");
  CLI::Option* html = add_html_options(*command, *options);
  html->excludes(all);
  CLI::Option* fusion =
      command->add_flag("--fusion", options->fusion,
                        "Print instead for each softmax whether it is fused with the matmuls around it, or why not");
  command->add_flag("--require-fused", options->require_fused, "Fail if an attention is not fused")->needs(fusion);
  command->add_flag("--chunks", options->chunks,
                    "Print instead for each large matmul whether it is computed in chunks of rows, or why not");
  add_chunk_option(*command, options->row_chunks);
  CLI::Option* memory =
      command->add_flag("--memory", options->memory,
                        "Print instead the memory of a run: the arena, its peak and the values that are live there");
  command->add_option("--svg", options->svg, "Draw the memory plan to this SVG file; - is standard output")
      ->needs(memory);
  memory->excludes(fusion)->excludes(html);
  fusion->excludes(html);
  add_target_option(*command, options->target);
  add_precision_option(*command, options->precision);
  CLI::Option* budget = add_memory_budget(*command, options->memory_budget);
  command
      ->add_option("--dim", options->dims,
                   "Size of a dim for --html, --memory, --memory-budget and --chunks, as NAME=SIZE (repeatable)")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_threads_option(*command, options->threads, "Number of threads for --memory-budget; 0 uses one per CPU")
      ->needs(budget);
  command->footer(
      "Examples:\n"
      "  lathe explain mha.lathe\n"
      "  lathe explain mha.lathe --html --dim n_seq=4 -o mha.html\n"
      "  lathe explain step.lathe --fusion\n"
      "  lathe explain step.lathe --memory --svg memory.svg --dim B=4,T=64\n"
      "  lathe explain step.lathe --chunks --dim B=4,T=1024\n"
      "  lathe explain step.lathe --fusion --target=cuda:sm_90a --precision bf16\n"
      "  lathe explain step.lathe --memory-budget 1.5GiB --dim B=4,T=64");
  command->callback([options, command] { explain(*options, *command); });
}

}  // namespace lathe::tools
