#include "passes/compile_pipeline.h"

#include <iterator>

#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/shard/ring/ring_attention.h"
#include "passes/transforms/convert_dtype.h"
#include "passes/transforms/known_sizes.h"
#include "passes/transforms/mixed_precision.h"

namespace lathe {

namespace {

ir::Pass dtype_pass(DType to) {
  return {"dtype", "f32 values become those of another float dtype",
          [to](const ir::Graph& graph) { return ir::convert_dtype(graph, f32, to); }};
}

ir::Pass known_sizes_pass(const DimBindings& sizes) {
  return {"known-sizes", "unknown dims become numbers",
          [sizes](const ir::Graph& g) { return ir::with_sizes(g, sizes); }};
}

ir::Pass shard_pass(const std::function<ir::Graph(const ir::Graph&)>& divide) {
  return {"shard", "the whole graph becomes that of one process of a mesh, with collectives",
          [divide](const ir::Graph& graph) { return divide(graph); }};
}

}  // namespace

ir::Pipeline whole_graph_pipeline(const WholeGraph& asked) {
  ir::Pipeline pipeline;
  if (asked.dtype) pipeline.push_back(dtype_pass(*asked.dtype));
  if (asked.low_precision) pipeline.push_back(ir::mixed_precision_pass(*asked.low_precision));
  if (!asked.sizes.empty()) pipeline.push_back(known_sizes_pass(asked.sizes));
  if (asked.evaluation) pipeline.push_back(ir::evaluation_pass());
  if (asked.divide) pipeline.push_back(shard_pass(asked.divide));
  if (asked.ring) pipeline.push_back(shard::ring_pass());
  return pipeline;
}

std::vector<Stage> whole_graph_stages() {
  std::vector<Stage> stages;
  for (const ir::Pass& pass : {dtype_pass(f32), ir::mixed_precision_pass(bf16), ir::mixed_precision_pass(f16),
                               known_sizes_pass({}), ir::evaluation_pass(), shard_pass({}), shard::ring_pass()})
    stages.push_back({pass.name, pass.doc});
  return stages;
}

ir::Pipeline compile_pipeline(const Machine& machine, const LowerOptions& options) {
  ir::Pipeline pipeline = ir::default_pipeline(options.chunks.value_or(machine.chunks));
  ir::Pipeline more = machine_passes(machine, options);
  pipeline.insert(pipeline.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return pipeline;
}

ir::Graph as_fused(const ir::Graph& graph) {
  const ir::Graph primitives = ir::run_pipeline(graph, ir::default_pipeline({.on = false})).graph;
  return recompute_attention(prepare_for_fusion(primitives), {.result_dots = ResultDots{.converted = true}});
}

std::vector<Stage> lowering_stages(const Machine& machine) {
  std::vector<Stage> stages;
  if (machine.keeps_budgets)
    stages.push_back({"rematerialize", "with a memory budget, values are computed again for late readers"});
  for (const Stage& stage : std::initializer_list<Stage>{
           {"fuse", "nodes are parted into regions, one or more kernels each"},
           {"kernels", "regions become launches of kernels of loop IR; values are written over dead ones"},
           {"exchanges", "collectives run beside launches, small ones together"},
           {"memory-plan", "temporaries get their offsets in one arena"}})
    stages.push_back(stage);
  return stages;
}

}  // namespace lathe
