#pragma once

#include <optional>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The numbers of a constant as its dtype has them: rounded once, as the text may have more digits. One for all
/// elements, or each in row-major order; of complex ones pairs.
NumberList constant_values(const Node& constant);

/// The number that every element of a real value is, where a constant says so, seen through views, reshape and
/// contiguous: as the value's dtype has it.
std::optional<Number> uniform_value(const Graph& graph, ValueId id);

/// The same number as the text has it: 0.1, where the f32 next to it is 0.10000000149011612.
std::optional<Number> written_number(const Graph& graph, ValueId id);

}  // namespace lathe::ir
