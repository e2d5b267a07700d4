#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/ops/loops/loops.h"
#include "models/import/op_call.h"

/// Branches and loops of source graphs. Lathe has no branches, and its loops have a number of iterations that follows
/// from sizes. Where a condition is computed at run time, both branches run, or all iterations up to a limit, and
/// results are selected.
namespace lathe::importing {

/// Returns the results of one of two bodies of the node, by a condition of one bool. If it is known at import, only
/// its body is added. Otherwise both are, so their results must have equal types, and ops that may fail at run time
/// are refused. Throws UserErrors [import_unsupported], [import_operand].
Results either(const OpCall& call, const Value& condition, std::string_view yes, std::string_view no,
               const std::vector<Value>& inputs);

/// A loop of a source graph.
struct SourceLoop {
  std::optional<Dim> limit = {};  ///< the most iterations; none: only the condition ends the loop
  Value condition = {};           ///< whether the first iteration runs; absent: it does
  std::vector<Value> states = {};
  /// Adds an iteration to `graph`: returns whether another one follows, the next states, and values to stack.
  std::function<Results(const Value& index, std::vector<Value> states, const Graph& graph)> body;
};

/// Returns the states after the last iteration, then the stacked values. The number of iterations is that of the
/// limit if the condition stays true; that after which a counter has passed a number or size (loop_trips.h); one that
/// is counted at import, from the states that are known; or that of the limit with states that do not change after
/// the end. Throws UserError [import_unsupported] for other loops.
Results source_loop(const OpCall& call, const SourceLoop& loop);

/// Returns the results of a loop, carries first.
Results results_of(const LoopResults& loop);

}  // namespace lathe::importing
