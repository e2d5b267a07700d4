#pragma once

#include <CLI/App.hpp>
#include <string>

#include "ir/machine/machine_info.h"
#include "passes/shard/predict/step_rates.h"

namespace lathe::tools {

/// The rates that a prediction starts from, as a person writes them; "" takes those of the tables (ir/machine).
struct RateOptions {
  std::string machine = "x86-64-v4", rate, bandwidth, latency;
};

/// Adds --machine, --rate, --bandwidth and --latency; gives --machine.
CLI::Option* add_rate_options(CLI::App& command, RateOptions& options);

/// UserError [rate_text] for a number or unit that says none, [machine_name] for a machine that the tables lack.
shard::StepRates rates_of(const RateOptions& options);
/// The same for what is compiled for a machine, in place of options.machine: of a GPU also its memory, and what its
/// kernels cost.
shard::StepRates rates_of(const RateOptions& options, const MachineInfo& machine);

}  // namespace lathe::tools
