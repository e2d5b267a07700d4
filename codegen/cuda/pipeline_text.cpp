#include "codegen/cuda/pipeline_text.h"

#include <algorithm>

#include <fmt/core.h>

namespace lathe::cuda {

PipelineText pipeline_text(const kernel::StagePipeline& pipeline, int threads, bool copied_by_all, bool tells) {
  constexpr int all = 512, kept = 24, most = 240;
  const int consumers = pipeline.consumers, groups = consumers / kernel::warpgroup_threads;
  const bool shares = !copied_by_all && groups > 1 && threads == consumers + kernel::warpgroup_threads;
  const bool all_fill = copied_by_all || shares;
  PipelineText text;
  text.before_producer = {
      fmt::format("StagePipeline<{0}> pipeline = start_pipeline<{0}{1}>(pipeline_barriers, {2}, {3});",
                  pipeline.stages, tells ? ", true" : "", copied_by_all ? threads - consumers : 1, consumers),
      fmt::format("if (threadIdx.x {} {}) {{", all_fill ? ">=" : "==", consumers)};
  text.before_use = {fmt::format("}} else {}{{", all_fill ? "" : fmt::format("if (threadIdx.x < {}) ", consumers))};
  if (!shares) return text;
  text.before_producer.push_back(fmt::format("  give_registers<{}>();", kept));
  text.before_producer.push_back(fmt::format("  if (threadIdx.x != {}) return;", consumers));
  text.before_use.push_back(fmt::format("  take_registers<{}>();", std::min(most, (all - kept) / groups / 8 * 8)));
  return text;
}

}  // namespace lathe::cuda
