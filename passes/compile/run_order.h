#pragma once

#include "passes/lowering/lowered.h"

namespace lathe {

/// Returns a lowered graph with its nodes in execution order: the nodes of a fused region are contiguous, and regions
/// follow their plan (passes/fusion/order/schedule_order.h). Views and inlined values precede their first reader.
///
///   sum0, .., sum9, new0 = update by sum0, .., new9  ->  sum0, .., sum4, new0, sum5, new1, ..: an update runs as
///   soon
///                                                        as later sums hide the sum that it waits for
ir::Graph in_run_order(const Lowered& lowered);

}  // namespace lathe
