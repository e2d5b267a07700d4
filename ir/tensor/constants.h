#pragma once

#include <optional>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns the values of a constant, rounded once to its dtype, because the text may have more digits. Returns one
/// number for all elements, or one per element in row-major order; complex values are pairs.
NumberList constant_values(const Node& constant);

/// Returns the number, in the value's dtype, if all elements of a real value are equal by a constant. Looks through
/// views, reshape and contiguous.
std::optional<Number> uniform_value(const Graph& graph, ValueId id);

/// Returns the same number as written in the text: 0.1, although the nearest f32 is 0.10000000149011612.
std::optional<Number> written_number(const Graph& graph, ValueId id);

}  // namespace lathe::ir
