#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Moves reductions over outer dims into rows regions that pass over the same values anyway: those that compute what
/// is summed, and those that read it too. The gradients of a norm's weight and bias come out of the pass that makes
/// the gradient of its input this way. Only columns that are known and at most `most_columns`; the sum is used by
/// later regions only. `reads` is by node.
///
///   rows [B, S, d] inner=1: .. %8 sub*               rows [B, S, d] inner=1: .. %8 sub* %9 sum*
///   columns [B, S, d]: %9 sum*                  ->
void join_columns(FusionPlan& plan, const ir::Graph& graph, const std::vector<std::vector<Read>>& reads,
                  std::int64_t most_columns);

/// How many trailing dims a sum keeps, when it folds all others, the columns are known and at most `most_columns`,
/// and the rows are not known to be few; else 0.
int column_dims(const ir::Graph& graph, ir::ValueId sum, std::int64_t most_columns);

}  // namespace lathe
