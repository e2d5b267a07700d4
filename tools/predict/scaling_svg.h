#pragma once

#include <string>

#include "passes/shard/predict/rank_scaling.h"

namespace lathe::tools {

/// A picture of a predicted curve over the number of processes: time of a step and of its products, efficiency, and
/// the bytes that a process sends and holds. One self-contained SVG of 860 x 780.
std::string scaling_svg(const std::string& title, const shard::Scaling& scaling, const shard::ScalingCurve& curve);

}  // namespace lathe::tools
