#pragma once

#include <string>

#include "passes/shard/predict/rank_scaling.h"

namespace lathe::tools {

/// What a prediction takes and leaves out, then a line for each mesh: times, efficiency, bytes sent and held.
std::string scaling_table(const shard::Scaling& scaling, const shard::ScalingCurve& curve);

}  // namespace lathe::tools
