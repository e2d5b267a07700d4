#include "models/finetune/optimizer_settings.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/finetune/run_checks.h"

namespace lathe {

void OptimizerSettings::check() const {
  require_finite("lr", lr);
  require_finite("weight_decay", weight_decay);
  require_finite("clip", clip);
  require_at_least("steps", steps, 0);
  require_at_least("warmup", warmup, 0);
}

Schedule OptimizerSettings::schedule(double floor) const {
  if (steps == 1) return lr;
  if (warmup_steps() >= steps)
    throw UserError(fmt::format("{} warmup steps leave none of the {} training steps", warmup_steps(), steps),
                    "train_warmup", "give more steps or a smaller warmup");
  return Schedule::warmup_cosine({.peak = lr, .warmup = warmup_steps(), .total = steps, .floor = floor});
}

Settings OptimizerSettings::to_strings() const {
  return {{"lr", fmt::format("{}", lr)},
          {"weight_decay", fmt::format("{}", weight_decay)},
          {"clip", fmt::format("{}", clip)},
          {"steps", fmt::format("{}", steps)},
          {"warmup", fmt::format("{}", warmup)}};
}

}  // namespace lathe
