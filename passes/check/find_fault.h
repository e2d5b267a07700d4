#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "passes/check/expected_values.h"

namespace lathe::ir {

/// A way of running graphs that is to agree with the interpreter: outputs and updated states by name, as interpret
/// gives them.
using RunGraph = std::function<Tensors(const Graph& graph)>;

/// Why a result is wrong.
struct Fault {
  enum class Kind {
    op,        ///< `value` is wrong for its operands as they were computed, where every value is an output
    alone,     ///< `value` is wrong where it is the only output; each of its operands is right there
    together,  ///< every value is right alone: the result is wrong only where it is computed with others
  };
  Kind kind = Kind::op;
  ValueId value = {};
  Nearness nearness = {};
  std::string worst = {};                  ///< the element that differs most
  std::vector<std::string> inherits = {};  ///< the wrong results that depend on `value`, itself included
  /// Of `together`: others that are enough for it to be wrong; none: it is, as an update.
  std::vector<std::string> with = {};
};

/// Of results that `run` gets wrong: which values are to blame, so that every wrong result depends on one of them.
/// What only inherits a wrong operand is never blamed. `arguments` are those of the graph; `run` has them too.
std::vector<Fault> find_faults(const Graph& graph, const Tensors& arguments, std::vector<std::string> wrong,
                               const RunGraph& run, const ExpectOptions& options = {});

}  // namespace lathe::ir
