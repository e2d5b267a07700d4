#pragma once

#include <string>

#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

namespace lathe::test {

/// Returns a graph as lowering sees it when it fuses.
inline ir::Graph prepared(const ir::Graph& graph) {
  return recompute_attention(prepare_for_fusion(ir::run_pipeline(graph, ir::default_pipeline()).graph));
}

/// Returns every softmax that is not fused, with the reason; empty if all are fused.
inline std::string unfused(const ir::Graph& graph) {
  const ir::Graph ready = prepared(graph);
  std::string text;
  for (const AttentionReport& report : find_attention(ready).reports)
    if (!report.fused)
      text += "%" + std::to_string(report.softmax.index) + ": " + report.reason + " at %" +
              std::to_string(report.at.index) + " " + std::string(ready[report.at].op->name.value) + "\n";
  return text;
}

/// Returns the temporaries with at least `least` elements; for one batch and large S, those over rows and columns.
inline std::string square_temporaries(const Program& program, const DimBindings& dims, std::int64_t least) {
  std::string text;
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.kind == ProgramBuffer::Kind::temporary && buffer.elements.evaluate(dims) >= least)
      text += buffer.name + " " + buffer.elements.to_string() + "\n";
  return text;
}
/// The same for a graph on a CPU.
inline std::string square_temporaries(const ir::Graph& graph, const DimBindings& dims, std::int64_t least) {
  return square_temporaries(lower_cpu(ir::run_pipeline(graph, ir::default_pipeline()).graph, unnamed_cpu()), dims,
                            least);
}

}  // namespace lathe::test
