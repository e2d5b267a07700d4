#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lathe {

/// Detects from the losses of a run that it has diverged and cannot usefully continue.
///
/// A loss that is infinite or NaN makes the following update useless, even if the states are still finite. A step
/// that loss scaling skipped (frontend/train/loss_scaling.h) made no update, whatever its loss, and the next step
/// starts from the same states. After `most_skipped` skipped steps in a row, the halved scale is small enough for any
/// finite gradient, so the states themselves must be bad.
class DivergenceCheck {
 public:
  static constexpr std::int64_t most_skipped = 64;

  /// Must be called after each step. Returns the reason if the run has diverged: "the loss of step 17 is nan".
  std::optional<std::string> after_step(std::int64_t step, double loss, bool skipped);

 private:
  std::int64_t skipped_ = 0;  ///< consecutive skipped steps
};

}  // namespace lathe
