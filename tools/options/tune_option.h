#pragma once

#include <CLI/App.hpp>
#include <optional>

#include "runtime/tune/tune_options.h"

namespace lathe::tools {

/// Adds --tune and --tune=SECONDS; without either, `seconds` stays as it is: 0, for none.
CLI::Option* add_tune(CLI::App& command, double& seconds);

/// What the option asks for, for runs with these dims.
std::optional<TuneOptions> tune_options(double seconds, const DimBindings& dims);

}  // namespace lathe::tools
