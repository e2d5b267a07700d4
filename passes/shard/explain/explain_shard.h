#pragma once

#include <string>

#include "passes/shard/predict/step_rates.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

/// Describes the result of shard() for people. Each collective has bytes, line, reason and the time predicted for it
/// alone, if its sizes are known or given (local sizes, local_dims). After these come the bytes that a process sends
/// over each axis and the bytes that it holds.
std::string explain(const Sharded& sharded, const StepRates& rates = {}, const DimBindings& dims = {});

}  // namespace lathe::shard
