#pragma once

#include "models/finetune/optimizer_settings.h"

namespace CLI {
class App;
}

namespace lathe::tools {

/// Adds the options of the optimizer and of the schedule. The help shows the run's own defaults of `defaults`: lr
/// (any text), weight_decay and beta2, and those of clip and of the schedule if they differ from the settings'.
struct OptimizerDefaults {
  const char *lr, *weight_decay, *beta2;
  const char* clip = "1";
  const char* schedule = "cosine; schedule-free: constant";
};
void add_optimizer_options(CLI::App& command, OptimizerSettings& settings, const OptimizerDefaults& defaults);

}  // namespace lathe::tools
