#pragma once

#include "passes/shard/predict/step_rates.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

/// The time that a run of a process's graph is predicted to take, in seconds.
struct StepTime {
  double products = 0;   ///< of its products of matrices
  double memory = 0;     ///< of launches, beyond their products: memory, and what each costs; 0 where it is left out
  double exchanges = 0;  ///< of its exchanges, one after the other
  double waiting = 0;    ///< of them, that nothing else hides
  double step() const { return products + memory + waiting; }
};

/// An exchange alone: its messages, and the bytes that the first process sends.
///   messages * latency + bytes_sent / bandwidth
double exchange_seconds(const Exchange& exchange, const StepRates& rates, const DimBindings& dims);

/// Plays a run of a process's graph, as executables order it (passes/program/exchange_order.h): nodes take
/// product_flops / rates.flops one after the other; an exchange starts when its operand is there and those that
/// started before it are over, goes beside the nodes, and is waited for by the first node that reads its result. How
/// far gathers go ahead and scatters stay behind is bounded (ir/tensor/mesh/exchange_window.h).
/// Sums of one kind that nothing lies between go together up to rates.bucket_bytes, their messages too, and so do
/// gathers of what the next step reads. `dims` are those of a process (local_dims).
StepTime step_time(const ir::Graph& graph, const StepRates& rates, const DimBindings& dims);

}  // namespace lathe::shard
