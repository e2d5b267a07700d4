#include "ir/tensor/explain/explain.h"

#include <CLI/CLI.hpp>

#include "passes/chunks/explain_chunks.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_attention.h"
#include "passes/explain/explain_memory.h"
#include "passes/fusion/attention/require_attention.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/backend.h"
#include "runtime/host/host_cpu.h"
#include "runtime/target.h"
#include "tools/commands/commands.h"
#include "tools/files.h"
#include "tools/options/memory_budget.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"

namespace lathe::tools {

namespace {
struct ExplainOptions {
  std::string file, output = "-", precision = "f32", memory_budget, target = "host";
  std::vector<std::string> dims;
  int threads = 0;
  bool all = false, fusion = false, require_fused = false, chunks = false;
  std::optional<RowChunks> row_chunks;
};

std::string chunks_text(const ir::Graph& from, const ExplainOptions& options) {
  const ir::Graph graph = ir::with_sizes(from, given_dims(from, options.dims));
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline({.on = false})).graph;
  return explain_row_chunks(passed, options.row_chunks.value_or(RowChunks{}));
}

/// Compiles the graph to kernels. Disables "require-attention", so that the report precedes its error.
Compilation compiled_for(const ir::Graph& graph, const Machine& machine, const LowerOptions& options) {
  Compilation now = begin_compilation(graph, machine, {.lower = options});
  PipelineOptions passes;
  if (options.attention == AttentionFusion::required) passes.disable = {"require-attention"};
  run_through(now, Stage::Part::target, passes);
  run_until(now, "exchanges");
  return now;
}

std::string memory_text(const ir::Graph& from, const ExplainOptions& options) {
  const Machine machine = machine_of(Target::host());
  MemoryBudget budget = *memory_budget(options.memory_budget, given_dims(from, options.dims));
  budget.threads = options.threads > 0 ? options.threads : usable_cpus();
  return explain_memory(from, machine, budget);
}

void tell_fusion(const ir::Graph& graph, const ExplainOptions& options) {
  const Machine machine = machine_of(Target::named(options.target));
  LowerOptions lower;
  if (options.require_fused) lower.attention = AttentionFusion::required;
  const Compilation lowered = compiled_for(graph, machine, lower);
  write_text(options.output, explain_fusion(lowered, machine.info));
  if (options.require_fused) require_fused_attention(lowered.graph, {.few_rows = machine.fusion.attention_few_rows});
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Print the shape of each value and the reason for it");
  command->add_option("FILE", options->file, "IR text file, or model directory")->required();
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->add_flag("--all", options->all, "Print repeated layers in full");
  CLI::Option* fusion =
      command->add_flag("--fusion", options->fusion,
                        "Print instead for each softmax whether it is fused with the matmuls around it, or why not");
  command->add_flag("--require-fused", options->require_fused, "Fail if an attention is not fused")->needs(fusion);
  command->add_flag("--chunks", options->chunks,
                    "Print instead for each large matmul whether it is computed in chunks of rows, or why not");
  add_chunk_option(*command, options->row_chunks);
  add_target_option(*command, options->target)->needs(fusion);
  add_precision_option(*command, options->precision);
  CLI::Option* budget = add_memory_budget(*command, options->memory_budget);
  command
      ->add_option("--dim", options->dims,
                   "Size of a dim for --memory-budget and --chunks, as NAME=SIZE (repeatable)")
      ->allow_extra_args(false)
      ->delimiter(',');
  add_threads_option(*command, options->threads, "Number of threads for --memory-budget; 0 uses one per CPU")
      ->needs(budget);
  command->footer(
      "Examples:\n"
      "  lathe explain mha.lathe\n"
      "  lathe explain step.lathe --fusion\n"
      "  lathe explain step.lathe --chunks --dim B=4,T=1024\n"
      "  lathe explain step.lathe --fusion --target=cuda:sm_90a --precision bf16\n"
      "  lathe explain step.lathe --memory-budget 1.5GiB --dim B=4,T=64");
  command->callback([options] {
    const ir::Graph graph = with_precision(load_graph(options->file), options->precision);
    if (!options->memory_budget.empty()) {
      write_text(options->output, memory_text(graph, *options));
      return;
    }
    if (options->chunks) {
      write_text(options->output, chunks_text(graph, *options));
      return;
    }
    if (options->fusion) {
      tell_fusion(graph, *options);
      return;
    }
    write_text(options->output, ir::explain(graph, {.collapse_layers = !options->all}));
  });
}

}  // namespace lathe::tools
