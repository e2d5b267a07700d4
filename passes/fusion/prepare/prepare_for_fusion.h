#pragma once

#include "passes/pipeline/pass.h"

namespace lathe {

/// Returns the passes that bring a graph of primitives into the form that plan_fusion requires:
///   flat-exchanges    collectives exchange dense memory: passes/transforms/flat_exchanges.h
///   split-batches     matmuls in batches are split as described at split_batches
///   split-concats     a concat of many parts becomes a concat of concats
///   split-reductions  a reduction folds trailing dims only, or none of them: a sum over dims 0 and 2 of 3 becomes
///                     two sums; a sum over everything folds one dim at a time, from the last, so that its rows
///                     run in parallel; a reduction over dims of size 1 is a reshape
///   store-tables      a constant without a buffer gets one if its elements are looked up
///   own-results       each output and update is a computed node of its own: a `contiguous` copy replaces a
///                     view, an argument or a value that two results share
ir::Pipeline prepare_passes();

/// Applies all of them.
ir::Graph prepare_for_fusion(const ir::Graph& graph);

/// Applies own-results. Passes that rewrite a prepared graph may leave views as results, or one node for two results.
ir::Graph own_results(ir::Graph graph);

/// Throws InternalError if a result is not a computed node of its own, or if a reduction folds trailing dims together
/// with others. No plan could compute these.
void verify_prepared(const ir::Graph& graph);

}  // namespace lathe
