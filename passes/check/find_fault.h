#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "passes/check/expected_values.h"

namespace lathe::ir {

/// A way of running graphs that should agree with the interpreter. Returns outputs and updated states by name, as
/// interpret does.
using RunGraph = std::function<Tensors(const Graph& graph)>;

/// Why a result is wrong.
struct Fault {
  enum class Kind {
    op,        ///< if every value is an output: `value` is wrong for its operands as computed
    alone,     ///< if `value` is the only output: it is wrong, and each of its operands is right
    together,  ///< every value is right alone: the result is wrong only if it is computed with others
  };
  Kind kind = Kind::op;
  ValueId value = {};
  Nearness nearness = {};
  std::string worst = {};                  ///< the element that differs most
  std::vector<std::string> inherits = {};  ///< wrong results that depend on `value`, including itself
  /// For `together`: other results with which it is wrong. If empty, it is wrong without others, as an update.
  std::vector<std::string> with = {};
};

/// Returns the values to blame for results that `run` computes wrongly, so that every wrong result depends on one of
/// them. A value that only inherits a wrong operand is never blamed. `arguments` are those of the graph; `run` must
/// use the same ones.
std::vector<Fault> find_faults(const Graph& graph, const Tensors& arguments, std::vector<std::string> wrong,
                               const RunGraph& run, const ExpectOptions& options = {});

}  // namespace lathe::ir
