#include "passes/compile_pipeline.h"

#include <iterator>

#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"

namespace lathe {

ir::Pipeline whole_graph_pipeline(bool evaluation, std::function<ir::Graph(const ir::Graph&)> divide) {
  ir::Pipeline pipeline;
  if (evaluation) pipeline.push_back(ir::evaluation_pass());
  if (divide)
    pipeline.push_back({"shard", "the whole graph becomes that of one process of a mesh, with collectives",
                        [divide = std::move(divide)](const ir::Graph& graph) { return divide(graph); }});
  return pipeline;
}

ir::Pipeline compile_pipeline(const Machine& machine, const LowerOptions& options) {
  ir::Pipeline pipeline = ir::default_pipeline(options.chunks.value_or(machine.chunks));
  ir::Pipeline more = machine_passes(machine, options);
  pipeline.insert(pipeline.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return pipeline;
}

ir::Graph as_fused(const ir::Graph& graph) {
  const ir::Graph primitives = ir::run_pipeline(graph, ir::default_pipeline({.on = false})).graph;
  return recompute_attention(prepare_for_fusion(primitives), {.block_bytes = unnamed_cpu().l2.share()});
}

const std::vector<Stage>& lowering_stages() {
  static const std::vector<Stage> stages{
      {"rematerialize", "with a memory budget, values are computed again for late readers"},
      {"fuse", "nodes are parted into regions, one or more kernels each"},
      {"kernels", "each region becomes kernels of loop IR, and a launch of each"},
      {"memory-plan", "temporaries get their offsets in one arena"},
  };
  return stages;
}

}  // namespace lathe
