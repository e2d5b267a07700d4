#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/machine/row_chunks.h"
#include "ir/tensor/graph.h"
#include "passes/pipeline/pass.h"
#include "passes/pipeline/pipeline_options.h"

namespace lathe::ir {

/// The passes that every graph goes through, whatever it is compiled for: it is one of primitives then, in canonical
/// form. compile_pipeline() (passes/compile_pipeline.h) goes on from there.
Pipeline default_pipeline(const RowChunks& chunks = {});
/// Every graph pass that stands alone, by name; `lathe opt` runs any of them.
Pipeline all_passes(const RowChunks& chunks = {});

/// "evaluation": passes/transforms/evaluation.h.
Pass evaluation_pass();
/// The passes that change what a graph computes, which are no part of all_passes(): "evaluation"
/// (passes/transforms/evaluation.h), and those of mixed precision.
Pipeline mode_passes();

void insert_before(Pipeline& pipeline, std::string_view name, Pass pass);
/// Passes by name, such as "canonicalize,cse": those of all_passes() and mode_passes(), and those that bring a graph
/// of primitives into the form that machines take. UserError [pass_name] for another name.
Pipeline parse_pipeline(std::string_view names, const RowChunks& chunks = {});

/// The names of the passes; one that runs for the second time is "canonicalize.2".
std::vector<std::string> stage_names(const Pipeline& pipeline);

struct PipelineResult {
  Graph graph;
  std::vector<PassRun> runs;
};

/// Runs the passes, verifying the graph before the first and after each. A pass that throws, or whose result does not
/// verify, ends in InternalError that names the pass and the reproducer; a UserError of a pass passes through.
PipelineResult run_pipeline(const Graph& graph, const Pipeline& pipeline, const PipelineOptions& options = {});

}  // namespace lathe::ir
