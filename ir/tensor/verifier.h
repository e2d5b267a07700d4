#pragma once

#include <optional>
#include <string>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/inferred_types.h"

namespace lathe::ir {

/// Throws InternalError, naming the value and what is wrong, unless the graph is sound:
///   operands stand before their users, and are as many as the op takes;
///   attributes follow the op's schema, defaults filled in;
///   the type is the one that the shape rule infers, strides included, and every run-time check that the rule asks
///   for is among the graph's; arguments have names of their own and contiguous types; outputs have names of their
///   own and existing values; updates give a parameter or state, at most once each, a value of its dtype and shape.
/// The runner calls it after every pass. A parsed program needs no call: the builder refuses what this would.
void verify(const Graph& graph);

/// Why verify would throw, or nothing.
std::optional<std::string> find_defect(const Graph& graph);
/// `types`: for graphs that are verified one after the other, of which most nodes are alike.
std::optional<std::string> find_defect(const Graph& graph, InferredTypes& types);

}  // namespace lathe::ir
