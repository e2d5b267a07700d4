#pragma once

#include <optional>
#include <string>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/inferred_types.h"

namespace lathe::ir {

/// Throws InternalError, naming the value and the defect, unless the graph is valid:
///   operands precede their users, and match the op's arity;
///   attributes follow the op's schema, with defaults filled in;
///   the type equals the one inferred by the shape rule, including strides, and the graph contains every run-time
///   check that the rule raises; argument names are unique and their types contiguous; output names are unique and
///   their values exist; an update assigns a value of equal dtype and shape to a parameter or state, at most once
///   each.
/// The runner calls it after every pass. Parsed programs need no call: the builder already rejects invalid ones.
void verify(const Graph& graph);

/// Returns the reason why verify would throw, or nothing.
std::optional<std::string> find_defect(const Graph& graph);
/// `types`: shared cache, for verifying several similar graphs.
std::optional<std::string> find_defect(const Graph& graph, InferredTypes& types);

}  // namespace lathe::ir
