#pragma once

#include <optional>
#include <string>

#include "ir/tensor/graph.h"

namespace lathe::ir {

struct CompareOptions {
  bool locations = false;  ///< compare locations of values and checks
  bool names = true;       ///< compare names of the graph and values, and display names of dims
};

/// Returns a description of the first difference between two graphs, or nothing if they are equal node for node: ops,
/// operands, attributes (NaN equals NaN), types, outputs, updates and checks. Ignores the positions of arguments
/// among other nodes, but not their order: IR text lists them first.
std::optional<std::string> difference(const Graph& a, const Graph& b, const CompareOptions& options = {});

inline bool structurally_equal(const Graph& a, const Graph& b, const CompareOptions& options = {}) {
  return !difference(a, b, options);
}

}  // namespace lathe::ir
