#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "passes/check/find_fault.h"

namespace lathe::ir {

/// What a value contains.
struct ElementRange {
  std::int64_t elements = 0, nan = 0, infinite = 0;
  double lowest = 0, highest = 0;  ///< of the finite elements, if there are any
  std::string first = {};          ///< position and value of the first element that is not finite: "nan at [0, 3]"
  bool is_finite() const { return nan == 0 && infinite == 0; }
};

/// Returns the range of a tensor's elements; of both parts of complex ones.
ElementRange element_range(const HostTensor& tensor);
/// Returns "-1.5 .. 3", "2 NaN and 1 infinite of 6 elements, the others -1.5 .. 3; the first is nan at [0, 3]".
std::string to_string(const ElementRange& range);

/// Where the NaNs and infinities of a run come from.
struct NonFinite {
  /// A result that is not finite, and how many of its elements.
  struct Result {
    std::string name;
    std::int64_t nan = 0, infinite = 0;
  };
  std::vector<Result> results;
  /// The first value in graph order that makes them. Not set if every infinity is made on purpose.
  std::optional<ValueId> origin;
  /// If `origin` is not set, a value that makes infinities on purpose, such as a masked_fill with -inf.
  std::optional<ValueId> on_purpose;
  ElementRange range;                  ///< of the origin's result
  std::vector<ElementRange> operands;  ///< of its operands, in order
};

/// Finds the first op, in graph order, whose result is not finite although its operands are, and on which a result
/// that is not finite depends through such values. Runs an instrumented graph, which counts the NaNs and infinities
/// of every value, and then the graph of the operands; `run` must use the same arguments for both. Returns nothing if
/// the results of that run are finite.
///
/// Infinities made on purpose do not count: those of constants, of masked_fill, of arguments, and of ops that have
/// them from an operand. A NaN always counts, as of a softmax over a row that is masked as a whole; so does a NaN in
/// an argument, which is then the origin.
std::optional<NonFinite> find_nonfinite(const Graph& graph, const RunGraph& run);

/// The first half of find_nonfinite(): one run, and no ranges.
std::optional<NonFinite> count_nonfinite(const Graph& graph, const RunGraph& run);
/// The second half: runs the graph of `origin` and its operands, and returns their ranges in `found`.
void measure_nonfinite(const Graph& graph, const RunGraph& run, ValueId origin, NonFinite& found);

/// Describes it in a few lines: the results, the op at its line, its operands' ranges. `where` names a process: "on
/// rank 1 of 2".
std::string to_string(const NonFinite& found, const Graph& graph, const std::string& where = "");
/// The same, or if `found` is nothing: the results are finite as soon as every value is stored.
std::string to_string(const std::optional<NonFinite>& found, const Graph& graph, const std::string& where = "");
/// Returns UserError [not_finite] with a text of to_string().
UserError nonfinite_error(const std::string& description);

}  // namespace lathe::ir
