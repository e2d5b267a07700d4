#pragma once

#include <string>

#include "passes/lowering/lower_options.h"
#include "passes/lowering/machine.h"
#include "passes/shard/predict/step_rates.h"
#include "passes/shard/shard_options.h"

/// Whether keys and values of a split sequence go around in a ring, or are gathered.
namespace lathe {

struct RingChoice {
  shard::RingWay way = shard::RingWay::never;
  std::string why = {};  ///< a line, for people; "" where there is nothing to choose
};

/// Of a process's graph as shard::shard() gives it with everything gathered: a ring where it does not fit
/// `lowering.memory` (if that is given), and takes less in a ring; else where a step of it is predicted to take less
/// time, and it fits. `dims` are those of a process; with one missing there is no ring.
RingChoice choose_ring(const ir::Graph& gathered, const Machine& machine, const LowerOptions& lowering,
                       const shard::StepRates& rates, const DimBindings& dims);

}  // namespace lathe
