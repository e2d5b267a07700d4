#pragma once

#include <vector>

#include "ir/kernel/intrinsics/region.h"

namespace lathe::kernel {

/// The values and variables computed in a pipeline's body that some of its threads need, although they run only one
/// body of a region in it: for the loops that lead to this body, and in it.
struct PipelineNeeds {
  std::vector<bool> values, vars;
  bool set_elsewhere = false;  ///< a needed variable is also set outside of the loops that lead to the body
};

/// Returns the needs of the producers (RunBy::others) or of the last threads.
PipelineNeeds needs_of(const Kernel& kernel, const Block& pipeline, RunBy threads);

/// Returns whether the producers of a pipeline receive its value from the consumers.
bool is_broadcast_to_producers(const Instruction& in);

}  // namespace lathe::kernel
