#pragma once

#include <cstddef>
#include <optional>

#include "ir/tensor/op/op.h"

/// Ops with index operands: an index out of range is a run-time error.
namespace lathe::ir {

bool is_lookup(const Op& op);

/// The operand of a lookup that holds the indices, and their exclusive upper bound.
struct Lookup {
  std::size_t indices;
  Dim size;
};
/// Returns nothing for other nodes.
std::optional<Lookup> lookup_of(const Graph& graph, const Node& node);

}  // namespace lathe::ir
