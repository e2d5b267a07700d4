#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lathe {

/// Watches the losses of a run for the step after which it is no use to go on.
///
/// A loss that is infinite or no number means that the update it led to is no good, even where the states are still
/// finite. A step that loss scaling skipped (frontend/train/loss_scaling.h) made no update, whatever its loss: the
/// next one starts from the same states. But a scale that was halved in `most_skipped` steps in a row is small enough
/// for any gradient that is finite, so then the states themselves are at fault.
class DivergenceCheck {
 public:
  static constexpr std::int64_t most_skipped = 64;

  /// To be called after each step. Why the run has diverged, if it has: "the loss of step 17 is nan".
  std::optional<std::string> after_step(std::int64_t step, double loss, bool skipped);

 private:
  std::int64_t skipped_ = 0;  ///< in a row
};

}  // namespace lathe
