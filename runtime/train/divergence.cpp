#include "runtime/train/divergence.h"

#include <fmt/core.h>

#include <cmath>

namespace lathe {

std::optional<std::string> DivergenceCheck::after_step(std::int64_t step, double loss, bool skipped) {
  skipped_ = skipped ? skipped_ + 1 : 0;
  if (!skipped && !std::isfinite(loss)) return fmt::format("the loss of step {} is {}", step, loss);
  if (skipped_ < most_skipped) return std::nullopt;
  return fmt::format("{} steps in a row up to step {} were skipped, at ever smaller loss scales; the loss is {}",
                     skipped_, step, loss);
}

}  // namespace lathe
