#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Moves reductions over outer dims into rows regions that process the same values anyway: those that compute the
/// summed values, or those that read them too. The gradients of a norm's weight and bias are then computed in the
/// pass that computes the gradient of its input. Applies if the number of columns is known and at most
/// `most_columns`, and only later regions use the sum. `reads` is by node.
///
///   rows [B, S, d] inner=1: .. %8 sub*               rows [B, S, d] inner=1: .. %8 sub* %9 sum*
///   columns [B, S, d]: %9 sum*                  ->
void join_columns(FusionPlan& plan, const ir::Graph& graph, const NodeReads& reads, std::int64_t most_columns);

/// Returns the number of trailing dims that a sum keeps, if it folds all others, the columns are known and at most
/// `most_columns`, and the rows are not known to be few; otherwise 0.
int column_dims(const ir::Graph& graph, ir::ValueId sum, std::int64_t most_columns);

}  // namespace lathe
