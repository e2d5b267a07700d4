#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/train/loss_history.h"

namespace lathe::tools {

/// Returns a plot of a training run over its steps: the loss of every step (faint), its running mean, and the
/// validation losses. The result is a self-contained SVG of 860 x 480. Losses are in nats per `unit`.
std::string loss_curve_svg(const std::string& title, const std::vector<LossPoint>& training,
                           const std::vector<LossPoint>& validation, std::string_view unit = "character");

}  // namespace lathe::tools
