#pragma once

#include <CLI/App.hpp>
#include <optional>

#include "runtime/tune/tune_options.h"

namespace lathe::tools {

/// Adds --tune and --tune=SECONDS. Without either, `seconds` keeps its value; 0 means no tuning.
CLI::Option* add_tune(CLI::App& command, double& seconds);

/// Returns the requested tuning for runs with these dims, or nullopt if there is none.
std::optional<TuneOptions> tune_options(double seconds, const DimBindings& dims);

}  // namespace lathe::tools
