#pragma once

#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Values that some of their readers compute again, instead of keeping them alive since they were first computed.
struct Recomputation {
  std::vector<ValueId>
      values;  ///< copied just before the first reader that needs them; a copy reads the other copies
  /// They read the copies. For readers of a view of a value, list the view among the values.
  std::vector<ValueId> readers;
};

/// Returns the graph with new copies of values for the readers that request them. It has equal nodes, which a
/// GraphBuilder (and so every pass through one) would merge, so run this after all such passes. Copies keep the
/// location and lose the name.
///
///   %1 = exp %x                         %1 = exp %x
///   %2 = sum %1 {dims=[]}               %2 = sum %1 {dims=[]}
///   %3 = mul %1, %2                     %3 = exp %x
///                                       %4 = mul %3, %2        for {.values = {%1}, .readers = {%3}}
/// `copies`, if given, receives the copy of each of a recomputation's values in the new graph, in their order; an
/// invalid id for a value that no reader needs.
Graph recompute(const Graph& graph, std::span<const Recomputation> wanted,
                std::vector<std::vector<ValueId>>* copies = nullptr);

}  // namespace lathe::ir
