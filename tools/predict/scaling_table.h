#pragma once

#include <string>

#include "passes/shard/predict/rank_scaling.h"

namespace lathe::tools {

/// Returns the assumptions of a prediction, then a line for each mesh: times, efficiency, bytes sent and memory.
std::string scaling_table(const shard::Scaling& scaling, const shard::ScalingCurve& curve);

}  // namespace lathe::tools
