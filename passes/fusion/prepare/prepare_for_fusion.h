#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Brings a graph of primitives into the form that plan_fusion wants: each output and update is a computed node of
/// its own (a `contiguous` copy stands in for a view, an argument or a value that two of them share), and a reduction
/// folds trailing dims only, or none of them; one over dims of size 1 is a reshape: sum over dims 0 and 2 of 3
/// becomes two sums, a sum over everything goes dim by dim from the last, so that its rows run in parallel. Products
/// in batches are split as split_batches says. A concat of many parts becomes one of concats of some parts each.
ir::Graph prepare_for_fusion(const ir::Graph& graph);

/// The part of it about results: what rewrites a prepared graph may leave views, or one node for two of them.
ir::Graph own_results(ir::Graph graph);

/// Throws InternalError where a result is no computed node of its own, or a reduction folds trailing dims and others:
/// no plan would make these.
void verify_prepared(const ir::Graph& graph);

}  // namespace lathe
