#pragma once

#include "passes/pipeline/pass.h"

namespace lathe {

/// The passes that bring a graph of primitives into the form that plan_fusion wants:
///   flat-exchanges    collectives exchange dense memory: passes/transforms/flat_exchanges.h
///   split-batches     products in batches are split as split_batches says
///   split-concats     a concat of many parts becomes one of concats of some parts each
///   split-reductions  a reduction folds trailing dims only, or none of them: sum over dims 0 and 2 of 3 becomes two
///                     sums, a sum over everything goes dim by dim from the last, so that its rows run in parallel;
///                     one over dims of size 1 is a reshape
///   store-tables      a constant without a buffer gets one where its elements are looked up
///   own-results       each output and update is a computed node of its own: a `contiguous` copy stands in for a
///                     view, an argument or a value that two of them share
ir::Pipeline prepare_passes();

/// All of them.
ir::Graph prepare_for_fusion(const ir::Graph& graph);

/// The last of them: what rewrites a prepared graph may leave views, or one node for two of them.
ir::Graph own_results(ir::Graph graph);

/// Throws InternalError where a result is no computed node of its own, or a reduction folds trailing dims and others:
/// no plan would make these.
void verify_prepared(const ir::Graph& graph);

}  // namespace lathe
