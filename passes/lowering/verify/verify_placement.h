#pragma once

#include <functional>
#include <span>
#include <utility>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Throws InternalError where a value would be read, or handed back, from a buffer that another one lies in by then:
/// runs through the regions in their order and keeps account of what each buffer holds. It knows nothing of why
/// values share buffers. `buffer_of`: of values in memory; `copies`: states, and the values that they take at the
/// end.
void verify_placement(const ir::Graph& graph, const FusionPlan& plan,
                      const std::function<int(ir::ValueId)>& buffer_of,
                      std::span<const std::pair<ir::ValueId, ir::ValueId>> copies);

}  // namespace lathe
