#pragma once

#include <CLI/App.hpp>
#include <string>

#include "passes/shard/step_rates.h"

namespace lathe::tools {

/// The rates that a prediction starts from, as a person writes them; "" takes those of the tables (ir/machine).
struct RateOptions {
  std::string machine = "x86-64-v4", rate, bandwidth, latency;
};

/// Adds --machine, --rate, --bandwidth and --latency.
void add_rate_options(CLI::App& command, RateOptions& options);

/// UserError [rate_text] for a number or unit that says none, [machine_name] for a machine that the tables lack.
shard::StepRates rates_of(const RateOptions& options);

}  // namespace lathe::tools
