#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::tools {

struct CurvePoint {
  std::int64_t step;
  double loss;
};

/// A picture of a training run: the loss of every step (faint), its running mean, and the validation losses, over the
/// step. One self-contained SVG of 860 x 480.
std::string loss_curve_svg(const std::string& title, const std::vector<CurvePoint>& training,
                           const std::vector<CurvePoint>& validation);

}  // namespace lathe::tools
