#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/pass.h"
#include "passes/pipeline/pipeline_options.h"

namespace lathe::ir {

/// The names of the passes; the second run of a pass is "canonicalize.2".
std::vector<std::string> stage_names(const Pipeline& pipeline);

/// The passes up to and including the one named `stage` (of stage_names()). UserError [pass_name] for another name.
Pipeline up_to(std::string_view stage, Pipeline pipeline);

struct PipelineResult {
  Graph graph;
  std::vector<PassRun> runs;
};

/// Runs the passes, verifying the graph before the first and after each. A pass that throws, or whose result does not
/// verify, is reported as InternalError with the name of the pass and the reproducer; a UserError passes through.
PipelineResult run_pipeline(const Graph& graph, const Pipeline& pipeline, const PipelineOptions& options = {});
/// The same, reported under `labels`, one for each pass. Does not show the graph before the first pass.
PipelineResult run_passes(Graph graph, const Pipeline& pipeline, const std::vector<std::string>& labels,
                          const PipelineOptions& options);

}  // namespace lathe::ir
