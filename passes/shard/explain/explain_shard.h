#pragma once

#include <string>

#include "passes/shard/predict/step_rates.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

/// What shard did, for people: each exchange with bytes, line, reason and the time predicted for it alone, where its
/// sizes are known or given (sizes of a process, local_dims); then what a process sends over each axis and holds.
std::string explain(const Sharded& sharded, const StepRates& rates = {}, const DimBindings& dims = {});

}  // namespace lathe::shard
