#pragma once

#include <CLI/App.hpp>
#include <string>

#include "ir/hardware/hardware_info.h"
#include "passes/shard/predict/step_rates.h"

namespace lathe::tools {

/// The hardware rates of a prediction, as given on the command line; "" uses those of the tables (ir/hardware).
struct RateOptions {
  std::string machine = "x86-64-v4", rate, bandwidth, latency;
};

/// Adds --machine, --rate, --bandwidth and --latency. Returns --machine.
CLI::Option* add_rate_options(CLI::App& command, RateOptions& options);

/// Returns the rates. Throws UserError [rate_text] for an invalid number or unit, [machine_name] for an unknown
/// machine.
shard::StepRates rates_of(const RateOptions& options);
/// Same for code compiled for `machine`, which replaces options.machine. For a GPU, includes its memory bandwidth and
/// kernel launch cost.
shard::StepRates rates_of(const RateOptions& options, const HardwareInfo& machine);

}  // namespace lathe::tools
