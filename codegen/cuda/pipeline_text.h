#pragma once

#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// The lines that a pipeline begins with, and those between the body as it is for the producers and for the
/// consumers.
struct PipelineText {
  std::vector<std::string> before_producer, before_use;
};

/// Of a block of `threads`. Where one of a whole warpgroup fills for several groups that use, registers go from that
/// group to these (setmaxnreg of sm_90a): each multiprocessor has 512 for every fourth part of its warps' lanes.
/// `tells`: consumers tell the producers something.
PipelineText pipeline_text(const kernel::StagePipeline& pipeline, int threads, bool copied_by_all, bool tells);

}  // namespace lathe::cuda
