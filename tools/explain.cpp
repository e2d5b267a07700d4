#include "ir/tensor/explain.h"

#include <CLI/CLI.hpp>

#include "passes/chunks/explain_chunks.h"
#include "passes/cpu/explain_cpu_attention.h"
#include "passes/cpu/explain_memory.h"
#include "passes/cpu/lower_cpu.h"
#include "passes/fusion/attention/explain_attention.h"
#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/gpu/attention/explain_gpu_attention.h"
#include "passes/pipeline.h"
#include "passes/transforms/known_sizes.h"
#include "runtime/machine/cpu_info.h"
#include "runtime/target.h"
#include "runtime/target_machine.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/memory_budget.h"
#include "tools/precision.h"
#include "tools/target.h"

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

std::string memory_text(const ir::Graph& from, const ExplainOptions& options) {
  const ir::Graph graph = ir::run_pipeline(from, ir::default_pipeline()).graph;
  MemoryBudget budget = *memory_budget(options.memory_budget, given_dims(graph, options.dims));
  budget.threads = options.threads > 0 ? options.threads : usable_cpus();
  return explain_memory(graph, vector_target(Target::host().cpu), budget);
}

std::string fusion_text(const ir::Graph& graph, const ExplainOptions& options) {
  const Target target = Target::named(options.target);
  if (target.kind == Target::Kind::cuda)
    return explain_gpu_attention(graph, target.arch && target.arch->has_warpgroups());
  const VectorTarget vectors = vector_target(target.cpu);
  return explain_cpu_attention(graph, vectors,
                               options.require_fused ? AttentionCosts::none : attention_costs(vectors));
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Tell the story of a graph's shapes: every value, and why");
  command->add_option("FILE", options->file, "IR text")->required();
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_flag("--all", options->all, "Tell layers that repeat in full");
  CLI::Option* fusion = command->add_flag(
      "--fusion", options->fusion, "Tell of every softmax instead: fused with the products around it, or why not");
  command->add_flag("--require-fused", options->require_fused, "An attention that is not fused is an error")
      ->needs(fusion);
  command->add_flag("--chunks", options->chunks,
                    "Tell of large products instead: computed in chunks of rows, or why they stay whole");
  add_chunk_option(*command, options->row_chunks);
  add_target_option(*command, options->target)->needs(fusion);
  add_precision_option(*command, options->precision);
  CLI::Option* budget = add_memory_budget(*command, options->memory_budget);
  command->add_option("--dim", options->dims, "With --memory-budget or --chunks: the size of a dim, as NAME=SIZE")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--threads", options->threads, "With --memory-budget: 0: one a CPU")
      ->check(CLI::Range(0, 1024))
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
      const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
      write_text(options->output, fusion_text(passed, *options));
      if (options->require_fused) require_fused_attention(recompute_attention(prepare_for_fusion(passed)));
      return;
    }
    write_text(options->output, ir::explain(graph, {.collapse_layers = !options->all}));
  });
}

}  // namespace lathe::tools
