#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/options/pass_run.h"
#include "ir/options/pipeline_options.h"
#include "ir/tensor/pass.h"

namespace lathe::ir {

/// Numbers repeated names: the second "canonicalize" becomes "canonicalize.2".
std::vector<std::string> numbered(std::vector<std::string> names);
/// Returns unique names of the passes; the second run of a pass is "canonicalize.2".
std::vector<std::string> stage_names(const Pipeline& pipeline);

/// Returns the passes up to and including `stage` (of stage_names()). Throws UserError [pass_name] for any other
/// name.
Pipeline up_to(std::string_view stage, Pipeline pipeline);

struct PipelineResult {
  Graph graph;
  std::vector<PassRun> runs;
};

/// Runs the passes, and verifies the graph before the first pass and after each. If a pass throws or its result does
/// not verify, throws InternalError with the name of the pass and the reproducer. UserErrors propagate.
PipelineResult run_pipeline(const Graph& graph, const Pipeline& pipeline, const PipelineOptions& options = {});
/// Same, with `labels` as names, one per pass. Does not dump the graph before the first pass.
PipelineResult run_passes(Graph graph, const Pipeline& pipeline, const std::vector<std::string>& labels,
                          const PipelineOptions& options);

}  // namespace lathe::ir
