#pragma once

#include <functional>
#include <span>
#include <utility>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Throws InternalError if a value is read or returned from a buffer after another value has overwritten it.
/// Simulates the regions in order and tracks the content of each buffer, independently of the pass that assigned the
/// buffers. `buffer_of` maps values in memory to buffers. `copies` are pairs of a state and the value that is copied
/// into it at the end.
void verify_placement(const ir::Graph& graph, const FusionPlan& plan,
                      const std::function<int(ir::ValueId)>& buffer_of,
                      std::span<const std::pair<ir::ValueId, ir::ValueId>> copies);

}  // namespace lathe
