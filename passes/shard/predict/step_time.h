#pragma once

#include "passes/shard/predict/step_rates.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

/// The predicted time of a run of a process's graph, in seconds.
struct StepTime {
  double products = 0;  ///< of its matmuls
  /// Of launches, in addition to their matmuls: memory traffic, and the cost of each launch. 0 if ignored.
  double memory = 0;
  double collectives = 0;  ///< of its collectives, in sequence
  double waiting = 0;      ///< the part of `collectives` that does not overlap with nodes
  double step() const { return products + memory + waiting; }
};

/// Returns the time of a collective alone: its messages, and the bytes that the first process sends.
///   messages * latency + bytes_sent / bandwidth
double collective_seconds(const Collective& collective, const StepRates& rates, const DimBindings& dims);

/// Simulates a run of a process's graph, in the order of executables (passes/program/collective_order.h).
/// Nodes take product_flops / rates.flops, one after the other. A collective starts when its operand is available and
/// earlier collectives are complete, and overlaps with nodes. The first node that reads its result waits for it. How
/// far gathers are ahead and scatters behind is bounded (ir/tensor/mesh/collective_window.h). Sums of one kind with
/// nothing between them are sent together up to rates.bucket_bytes, including their messages, and so are gathers of
/// values that the next step reads. `dims` are local (local_dims).
StepTime step_time(const ir::Graph& graph, const StepRates& rates, const DimBindings& dims);

}  // namespace lathe::shard
