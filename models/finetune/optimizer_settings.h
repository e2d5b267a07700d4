#pragma once

#include <algorithm>
#include <cstdint>

#include "frontend/train/schedule.h"
#include "runtime/train/run_settings.h"

namespace lathe {

/// AdamW, its learning rate and the number of updates.
struct OptimizerSettings {
  double lr = 1e-3, weight_decay = 0.1, clip = 1.0;
  std::int64_t steps = 900;
  std::int64_t warmup = 0;  ///< steps up to the peak rate; 0: a tenth of all steps, at most 40
  std::int64_t warmup_steps() const {
    return warmup > 0 ? warmup : std::max<std::int64_t>(1, std::min<std::int64_t>(40, steps / 10));
  }
  /// Throws UserError [train_options] for numbers out of range. 0 steps are not decided yet.
  void check() const;
  /// Returns the learning rate schedule: a linear warm-up to `lr`, then half a cosine down to `floor`. A single step
  /// uses `lr`. Throws UserError [train_warmup] if the warm-up leaves no step.
  Schedule schedule(double floor) const;
  /// Returns the settings by name for a checkpoint. A run that resumes with other values reports them.
  Settings to_strings() const;
};

}  // namespace lathe
