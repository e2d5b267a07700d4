#pragma once

#include <optional>
#include <string>

#include "ir/tensor/graph.h"

namespace lathe::ir {

struct CompareOptions {
  bool locations = false;  ///< of values and checks
  bool names = true;       ///< of the graph, the values and, for display, of dims
};

/// The first difference between two graphs, in words, or nothing where they are equal node for node: ops, operands,
/// attributes (NaN equals NaN), types, outputs, updates and checks. Where arguments stand among the other nodes does
/// not count, their order does: IR text lists them first.
std::optional<std::string> difference(const Graph& a, const Graph& b, const CompareOptions& options = {});

inline bool structurally_equal(const Graph& a, const Graph& b, const CompareOptions& options = {}) {
  return !difference(a, b, options);
}

}  // namespace lathe::ir
