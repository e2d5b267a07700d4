#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Brings a graph of primitives into the form that plan_fusion needs: flat_collectives
/// (passes/transforms/sizes/flat_collectives.h), split_batches (split_batches.h), then the functions below in their
/// order, with store_transposed (store_transposed.h) after split_reductions. The stages of compilation run each by
/// its own name (passes/compile/stages.cpp).
ir::Graph prepare_for_fusion(const ir::Graph& graph);

/// Splits a concat of many parts into one of concats of some parts each.
ir::Graph split_concats(ir::Graph graph);
/// Makes every reduction reduce trailing dims only, or none of them: a sum over dims 0 and 2 of 3 becomes two sums. A
/// sum over everything goes dim by dim from the last, so that its rows run in parallel. A reduction over dims of size
/// 1 becomes a reshape.
ir::Graph split_reductions(ir::Graph graph);
/// Stores a splat constant in memory where its elements are looked up by address.
ir::Graph store_tables(ir::Graph graph);
/// Stores each operand of a loop in memory of its own, row-major: the loop's iterations read parts of it.
ir::Graph store_loop_operands(ir::Graph graph);
/// Makes each output and update a computed node of its own: a `contiguous` copy replaces a view, an argument or a
/// value that two of them share.
ir::Graph own_results(ir::Graph graph);

/// Throws InternalError for a graph that prepare_for_fusion could not have returned: a result that is no computed
/// node of its own, or a reduction of trailing dims together with others.
void verify_prepared(const ir::Graph& graph);

}  // namespace lathe
