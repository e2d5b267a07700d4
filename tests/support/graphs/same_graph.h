#pragma once

#include <catch2/catch.hpp>

#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/diff/graph_diff.h"

namespace lathe::test {

/// Checks that two graphs are equal node for node. A failure prints the first difference in order, and all
/// differences in structure.
inline void check_same_graph(const ir::Graph& a, const ir::Graph& b, const ir::CompareOptions& options = {}) {
  const auto first = ir::difference(a, b, options);
  INFO(ir::to_string(ir::diff(a, b, {.names = options.names, .locations = options.locations})));
  CHECK(first.value_or("equal") == "equal");
}

}  // namespace lathe::test
