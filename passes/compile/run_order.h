#pragma once

#include "passes/lowering/lowered.h"

namespace lathe {

/// A lowered graph with its nodes in the order in which the program runs them: those of a fused region together, and
/// regions as their plan orders them (passes/fusion/order/schedule_order.h). Views, and what readers compute for
/// themselves, come before the first of these.
///
///   sum0, .., sum9, new0 = update by sum0, .., new9  ->  sum0, .., sum4, new0, sum5, new1, ..: an update as soon as
///                                                        later sums hide the one that it waits for
ir::Graph in_run_order(const Lowered& lowered);

}  // namespace lathe
