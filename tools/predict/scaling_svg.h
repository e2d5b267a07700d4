#pragma once

#include <string>

#include "passes/shard/predict/rank_scaling.h"

namespace lathe::tools {

/// Returns a plot of a prediction over the number of processes: time of a step and of its matmuls, efficiency, bytes
/// sent and memory per process. The result is a self-contained SVG of 860 x 780.
std::string scaling_svg(const std::string& title, const shard::Scaling& scaling, const shard::ScalingCurve& curve);

}  // namespace lathe::tools
