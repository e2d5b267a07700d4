#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "ir/support/nearest.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "passes/chunks/chunk_rows.h"
#include "passes/compile/compilation.h"
#include "passes/compile/fit_budget.h"
#include "passes/compile/fit_loops.h"
#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/attention/require_attention.h"
#include "passes/fusion/few_rows/read_before_append.h"
#include "passes/fusion/prepare/cast_before_views.h"
#include "passes/fusion/prepare/pad_products.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/fusion/prepare/split_batches.h"
#include "passes/fusion/prepare/store_transposed.h"
#include "passes/fusion/text/print_regions.h"
#include "passes/lowering/lower.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/program/collective_order.h"
#include "passes/program/text/print_program.h"
#include "passes/shard/ring/ring_attention.h"
#include "passes/transforms/canonicalize.h"
#include "passes/transforms/constant_fold.h"
#include "passes/transforms/cse.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/dtypes/convert_dtype.h"
#include "passes/transforms/dtypes/decompose_complex.h"
#include "passes/transforms/dtypes/mixed_precision.h"
#include "passes/transforms/evaluation.h"
#include "passes/transforms/expand.h"
#include "passes/transforms/loops/simplify_loops.h"
#include "passes/transforms/sizes/flat_collectives.h"
#include "passes/transforms/sizes/known_sizes.h"

namespace lathe {

namespace {

using ir::Graph;
using Request = CompileRequest;
using Part = Stage::Part;

AttentionSearchOptions attention_of(const Request& request, const Machine& machine) {
  return {.costs = attention_costs(machine, request.lower),
          .decode = machine.fusion.attention_decode,
          .delta = machine.fusion.attention_delta};
}

Graph required(Graph graph, const Machine& machine) {
  require_fused_attention(graph, {.decode = machine.fusion.attention_decode});
  return graph;
}

std::string checkpoint(Compilation& now) {
  now.pool = std::make_shared<KernelPool>();
  fit_loops(now);
  const auto rewritten = std::ranges::count_if(now.loops, [](const LoopDecision& each) { return each.every > 0; });
  return fmt::format("{} loops with checkpoints", rewritten);
}

std::string rematerialize(Compilation& now) {
  if (!now.pool) now.pool = std::make_shared<KernelPool>();
  fit_budget(now);
  ir::verify(now.graph);
  return "";
}

std::string fuse(Compilation& now) {
  now.regions = fuse_regions(now.graph, now.machine, now.request.lower, now.recomputed);
  return fmt::format("{} regions", now.regions.regions.size());
}

std::string kernels(Compilation& now) {
  KernelPool own;
  Program& program = now.program;
  program = make_kernels(now.graph, now.regions, now.machine, now.request.lower, now.pool ? *now.pool : own);
  program.recomputed = now.recomputed_kinds;
  return fmt::format("{} launches of {} kernels", program.launches.size(), program.kernels.size());
}

std::string join(Compilation& now) {
  now.machine.join_launches(now.program);
  int joined = 0;
  for (const JoinedLaunches& each : now.program.joined) joined += each.end - each.first;
  return fmt::format("{} launches in {} kernels of phases", joined, now.program.joined.size());
}

std::string collectives(Compilation& now) {
  Program& program = now.program;
  order_collectives(program, now.request.lower.bucket_bytes);
  verify_program(program);
  const auto values = std::accumulate(program.collectives.begin(), program.collectives.end(), std::size_t{0},
                                      [](std::size_t sum, const Collective& e) { return sum + e.parts.size(); });
  return fmt::format("{} collectives of {} values", program.collectives.size(), values);
}

std::string memory_plan(Compilation& now) {
  now.plan = plan_memory(now.program, now.request.plan_sizes);
  return fmt::format("an arena of {}", format_bytes(now.plan->arena_bytes));
}

}  // namespace

// All stages from the first rewrite to the memory plan, in order. Code stages follow: Machine::code.
const std::vector<Stage>& stages() {
  static const std::vector<Stage> table{
      {.part = Part::whole_graph,
       .name = "dtype",
       .doc = "f32 values become those of another float dtype",
       .option = "--dtype",
       .enabled = [](const Request& r) { return r.dtype.has_value(); },
       .pass = [](Graph g, const Request& r, const Machine&) { return ir::convert_dtype(g, f32, *r.dtype); },
       .needs_request = true},
      {.part = Part::whole_graph,
       .name = "mixed-bf16",
       .doc = "products in bf16, sums and norms in f32, parameters in f32",
       .option = "--precision bf16",
       .enabled = [](const Request& r) { return r.low_precision == bf16; },
       .pass = [](Graph g, const Request&, const Machine&) { return ir::mixed_precision(g, bf16); }},
      {.part = Part::whole_graph,
       .name = "mixed-f16",
       .doc = "products in f16, sums and norms in f32, parameters in f32",
       .option = "--precision f16",
       .enabled = [](const Request& r) { return r.low_precision == f16; },
       .pass = [](Graph g, const Request&, const Machine&) { return ir::mixed_precision(g, f16); }},
      {.part = Part::whole_graph,
       .name = "known-sizes",
       .doc = "unknown dims become numbers",
       .option = "--dim and --chunk-rows",
       .enabled = [](const Request& r) { return !r.sizes.empty(); },
       .pass = [](Graph g, const Request& r, const Machine&) { return ir::with_sizes(g, r.sizes); },
       .needs_request = true},
      {.part = Part::whole_graph,
       .name = "evaluation",
       .doc = "dropout returns its operand, for a graph that is not trained",
       .option = "--evaluation",
       .enabled = [](const Request& r) { return r.evaluation; },
       .pass = [](Graph g, const Request&, const Machine&) { return ir::evaluation(g); }},
      {.part = Part::whole_graph,
       .name = "shard",
       .doc = "the graph becomes the graph of one process of a mesh, with collectives",
       .option = "--mesh, and --split, --states or --parameters",
       .enabled = [](const Request& r) { return r.shard != nullptr; },
       .pass = [](Graph g, const Request& r, const Machine&) { return r.shard(g); },
       .needs_request = true,
       .runs_on_bodies = false},
      {.part = Part::whole_graph,
       .name = "ring",
       .doc = "gathers of keys and values become ring attention",
       .option = "--mesh, --split and --ring always",
       .enabled = [](const Request& r) { return r.ring; },
       .pass = [](Graph g, const Request&, const Machine&) { return shard::ring_attention(g).graph; }},

      {.part = Part::every_target,
       .name = "dce",
       .doc = "nodes that no result needs are dropped",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::dce(std::move(g)); }},
      {.part = Part::every_target,
       .name = "simplify-loops",
       .doc = "loops over the same operands are merged; values that do not change are computed before them",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::simplify_loops(std::move(g)); }},
      {.part = Part::every_target,
       .name = "canonicalize",
       .doc = "equivalent forms are rewritten to a canonical one",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::canonicalize(std::move(g)); }},
      {.part = Part::every_target,
       .name = "expand",
       .doc = "composites become primitives",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::expand(std::move(g)); }},
      {.part = Part::every_target,
       .name = "decompose-complex",
       .doc = "complex values become pairs of reals",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::decompose_complex(std::move(g)); }},
      {.part = Part::every_target,
       .name = "constant-fold",
       .doc = "small results of constants are computed",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::constant_fold(std::move(g)); }},
      {.part = Part::every_target,
       .name = "canonicalize",
       .doc = "equivalent forms are rewritten to a canonical one",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::canonicalize(std::move(g)); }},
      {.part = Part::every_target,
       .name = "cse",
       .doc = "equal computations become one",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::cse(std::move(g)); }},
      {.part = Part::every_target,
       .name = "simplify-loops",
       .doc = "loops over the same operands are merged; values that do not change are computed before them",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::simplify_loops(std::move(g)); }},
      {.part = Part::every_target,
       .name = "chunk-rows",
       .doc = "large products whose results are only reduced along columns are split into chunks of rows",
       .pass = [](Graph g, const Request& r,
                  const Machine& m) { return chunk_rows(std::move(g), r.lower.chunks.value_or(m.chunks)); }},

      {.part = Part::target,
       .name = "cast-before-views",
       .doc = "values are cast to bf16 or f16 before their views",
       .available = [](const Machine& m) { return m.casts_before_views; },
       .pass = [](Graph g, const Request&, const Machine&) { return cast_before_views(g); }},
      {.part = Part::target,
       .name = "pad-products",
       .doc = "odd sizes that products sum over, and odd columns of logits, are padded",
       .available = [](const Machine& m) { return m.padded_products.has_value(); },
       .pass = [](Graph g, const Request&, const Machine& m) { return pad_products(g, *m.padded_products); }},
      {.part = Part::target,
       .name = "read-before-append",
       .doc = "products of few rows read a cache before a row is appended, and the row",
       .available = [](const Machine& m) { return m.fusion.row_operands.rows > 0; },
       .pass = [](Graph g, const Request&,
                  const Machine& m) { return read_before_append(std::move(g), m.fusion.row_operands.rows); }},
      {.part = Part::target,
       .name = "flat-collectives",
       .doc = "collectives exchange dense memory, one process's shard after the other",
       .pass = [](Graph g, const Request&, const Machine&) { return ir::flat_collectives(std::move(g)); }},
      {.part = Part::target,
       .name = "split-batches",
       .doc = "batched products become products over dims of their own",
       .pass = [](Graph g, const Request&, const Machine&) { return split_batches(std::move(g)); }},
      {.part = Part::target,
       .name = "split-concats",
       .doc = "a concat of many parts becomes one of concats",
       .pass = [](Graph g, const Request&, const Machine&) { return split_concats(std::move(g)); }},
      {.part = Part::target,
       .name = "split-reductions",
       .doc = "a reduction reduces trailing dims only, or none of them",
       .pass = [](Graph g, const Request&, const Machine&) { return split_reductions(std::move(g)); }},
      {.part = Part::target,
       .name = "store-transposed",
       .doc = "a transposed value with many readers is stored in their order",
       .pass = [](Graph g, const Request&, const Machine&) { return store_transposed(std::move(g)); }},
      {.part = Part::target,
       .name = "store-tables",
       .doc = "a constant whose elements are looked up is stored in memory",
       .pass = [](Graph g, const Request&, const Machine&) { return store_tables(std::move(g)); }},
      {.part = Part::target,
       .name = "store-loop-operands",
       .doc = "operands of loops are stored in memory, row-major",
       .pass = [](Graph g, const Request&, const Machine&) { return store_loop_operands(std::move(g)); }},
      {.part = Part::target,
       .name = "own-results",
       .doc = "each output and update is a computed node of its own",
       .pass = [](Graph g, const Request&, const Machine&) { return own_results(std::move(g)); }},
      {.part = Part::target,
       .name = "sums-from-results",
       .doc = "row sums of weight times gradient are computed from results",
       .enabled = [](const Request& r) { return r.lower.attention != AttentionFusion::off; },
       .available = [](const Machine& m) { return m.fusion.attention_delta.has_value(); },
       .pass = [](Graph g, const Request& r, const Machine& m) { return attention_sums(g, attention_of(r, m)); }},
      {.part = Part::target,
       .name = "recompute-attention",
       .doc = "the backward pass recomputes attention weights",
       .enabled = [](const Request& r) { return r.lower.attention != AttentionFusion::off; },
       .pass = [](Graph g, const Request& r,
                  const Machine& m) { return recompute_scores(std::move(g), attention_of(r, m)); }},
      {.part = Part::target,
       .name = "require-attention",
       .doc = "fails if an attention is not fused",
       .option = "--require-fused",
       .enabled = [](const Request& r) { return r.lower.attention == AttentionFusion::required; },
       .pass = [](Graph g, const Request&, const Machine& m) { return required(std::move(g), m); }},

      {.part = Part::lowering,
       .name = "checkpoint-loops",
       .doc = "with a memory budget, loops keep some carries, and their gradients run iterations again",
       .option = "--memory-budget and --dim",
       .enabled = [](const Request& r) { return r.lower.memory.has_value(); },
       .available = [](const Machine& m) { return m.keeps_budgets; },
       .step = checkpoint,
       .print = [](const Compilation& now) { return ir::print(now.graph); }},
      {.part = Part::lowering,
       .name = "rematerialize",
       .doc = "with a memory budget, values are recomputed for late readers",
       .option = "--memory-budget and --dim",
       .enabled = [](const Request& r) { return r.lower.memory.has_value(); },
       .available = [](const Machine& m) { return m.keeps_budgets; },
       .step = rematerialize,
       .print = [](const Compilation& now) { return ir::print(now.graph); }},
      {.part = Part::lowering,
       .name = "fuse",
       .doc = "nodes are partitioned into regions, one or more kernels each",
       .step = fuse,
       .print = [](const Compilation& now) { return print_fused_graph(now.regions, now.graph); }},
      {.part = Part::lowering,
       .name = "kernels",
       .doc = "regions become launches of loop IR kernels; values overwrite dead values",
       .step = kernels,
       .print = [](const Compilation& now) { return print_program(now.program); }},
      {.part = Part::lowering,
       .name = "join-launches",
       .doc = "small launches in sequence become phases of one kernel",
       .enabled = [](const Request& r) { return r.lower.join_launches && !(r.lower.tuning && r.lower.tuning->all); },
       .available = [](const Machine& m) { return m.join_launches != nullptr; },
       .step = join,
       .print = [](const Compilation& now) { return print_program(now.program); }},
      {.part = Part::lowering,
       .name = "collectives",
       .doc = "collectives overlap with launches; small ones are merged",
       .step = collectives,
       .print = [](const Compilation& now) { return print_program(now.program); }},
      {.part = Part::lowering,
       .name = "memory-plan",
       .doc = "temporaries get their offsets in one arena",
       .needs_sizes = true,
       .step = memory_plan,
       .print = [](const Compilation& now) { return print_plan(*now.plan, now.program); }},
  };
  return table;
}

std::vector<Stage> stages_of(const Machine& machine) {
  std::vector<Stage> found;
  for (const Stage& stage : stages())
    if (!stage.available || stage.available(machine)) found.push_back(stage);
  for (const CodeStage& code : machine.code)
    found.push_back(
        {.part = Part::code, .name = code.name, .doc = code.doc, .needs_sizes = code.print_program != nullptr});
  std::vector<std::string> names;
  for (const Stage& stage : found) names.push_back(stage.name);
  names = ir::numbered(std::move(names));
  for (std::size_t i = 0; i < found.size(); ++i) found[i].label = std::move(names[i]);
  return found;
}

std::size_t find_stage(const std::vector<Stage>& stages, std::string_view label) {
  return static_cast<std::size_t>(std::ranges::find(stages, label, &Stage::label) - stages.begin());
}

std::vector<std::string> labels_of(const std::vector<Stage>& stages) {
  std::vector<std::string> labels;
  for (const Stage& stage : stages) labels.push_back(stage.label);
  return labels;
}

bool is_enabled(const Stage& stage, const CompileRequest& request) {
  return !stage.enabled || stage.enabled(request);
}

namespace {

/// The inputs of the passes of a pipeline.
struct PassFacts {
  CompileRequest request;
  Machine machine;
};

ir::Pass as_pass(const Stage& stage, const std::shared_ptr<const PassFacts>& facts) {
  return {.name = stage.name,
          .doc = stage.doc,
          .run = [pass = stage.pass,
                  facts](Graph graph) { return pass(std::move(graph), facts->request, facts->machine); },
          .runs_on_bodies = stage.runs_on_bodies};
}

/// A generic machine for single passes that run without a target.
Machine any_machine(const RowChunks& chunks) {
  const CpuInfo cpu = unnamed_cpu();
  Machine machine;
  machine.info = cpu;
  machine.chunks = chunks;
  machine.casts_before_views = true;
  machine.padded_products = PaddingLimits{};
  machine.fusion.row_operands.rows = 8;
  machine.fusion.attention_delta = AttentionDelta{.block_bytes = cpu.l2.share()};
  return machine;
}

[[noreturn]] void throw_unknown_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Stage& stage : stages())
    if (stage.pass && !stage.needs_request && std::ranges::find(names, stage.name) == names.end())
      names.push_back(stage.name);
  throw UserError(fmt::format("there is no pass named '{}'", name), "pass_name",
                  did_you_mean_or_list(name, names, "the passes are"));
}

}  // namespace

ir::Pipeline passes_of(const CompileRequest& request, const Machine& machine, Stage::Part last) {
  const auto facts = std::make_shared<const PassFacts>(request, machine);
  ir::Pipeline pipeline;
  for (const Stage& stage : stages_of(machine))
    if (stage.part <= last && stage.pass && is_enabled(stage, request)) pipeline.push_back(as_pass(stage, facts));
  return pipeline;
}

namespace ir {

Pipeline default_pipeline(const RowChunks& chunks) {
  return passes_of({}, any_machine(chunks), Stage::Part::every_target);
}

Pipeline all_passes(const RowChunks& chunks) {
  Pipeline all;
  for (Pass& pass : default_pipeline(chunks))
    if (std::ranges::find(all, pass.name, &Pass::name) == all.end()) all.push_back(std::move(pass));
  return all;
}

Pipeline parse_pipeline(std::string_view names, const RowChunks& chunks) {
  const auto facts = std::make_shared<const PassFacts>(CompileRequest(), any_machine(chunks));
  Pipeline pipeline;
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    const auto found = std::ranges::find_if(
        stages(), [&](const Stage& stage) { return stage.name == name && stage.pass && !stage.needs_request; });
    if (found == stages().end()) throw_unknown_pass(name);
    pipeline.push_back(as_pass(*found, facts));
  }
  return pipeline;
}

}  // namespace ir

}  // namespace lathe
