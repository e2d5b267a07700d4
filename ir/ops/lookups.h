#pragma once

#include <cstddef>
#include <optional>

#include "ir/tensor/op/op.h"

/// The ops that are told by integers where elements lie: an integer out of range is an error of the run.
namespace lathe::ir {

bool is_lookup(const Op& op);

/// Which operand of a lookup holds the indices, and the size that each of them is less than.
struct Lookup {
  std::size_t indices;
  Dim size;
};
/// Nothing for other nodes.
std::optional<Lookup> lookup_of(const Graph& graph, const Node& node);

}  // namespace lathe::ir
