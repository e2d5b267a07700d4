#pragma once

#include <string>

#include "ir/mesh/shard_options.h"
#include "ir/options/lower_options.h"
#include "passes/lowering/machine.h"
#include "passes/shard/predict/step_rates.h"

/// Decides between ring attention and gathered keys and values for a sharded sequence.
namespace lathe {

struct RingChoice {
  shard::RingWay way = shard::RingWay::never;
  std::string why = {};  ///< explanation in one line; "" if there is no choice
};

/// Chooses for a process's graph, as returned by shard::shard() with everything gathered. Chooses a ring if the
/// gathered graph exceeds `lowering.memory` (if set) and a ring needs less. Otherwise chooses the ring if it fits and
/// its predicted step time is shorter. `dims` are those of a process; never chooses a ring if one is unbound.
RingChoice choose_ring(const ir::Graph& gathered, const Machine& machine, const LowerOptions& lowering,
                       const shard::StepRates& rates, const DimBindings& dims);

}  // namespace lathe
