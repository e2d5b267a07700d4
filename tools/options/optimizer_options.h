#pragma once

#include "models/finetune/optimizer_settings.h"

namespace CLI {
class App;
}

namespace lathe::tools {

/// Adds --optimizer and --schedule.
void add_optimizer_options(CLI::App& command, OptimizerSettings& settings);

}  // namespace lathe::tools
