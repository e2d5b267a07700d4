#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/object_store.h"
#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

/// What is wrong, if anything.
using Complaint = std::optional<std::string>;

/// What oracles of compiled code have compiled, in this process: they ask for many kernels that others had too.
ObjectStore& compiled_kernels();

/// Something that holds of every valid graph.
struct Oracle {
  std::string_view name, doc;
  Complaint (*check)(const Case&);
  /// Smaller questions that it asks of a case: where it fails, one of them does. Null where it asks but one.
  std::vector<Case> (*parts)(const Case&) = nullptr;
};

/// That products in chunks of rows, and gradients through them, mean the same: of the graph with a loss on top.
Complaint in_chunks(const Case& from);

/// That any values of the graph as its only outputs come out of machine code as of the interpreter, into memory that
/// held NaNs: oracle_values.cpp. The second gives a case for each set of values.
Complaint exposed(const Case& from);
std::vector<Case> exposures(const Case& from);

/// That processes compute together what one computes, or that the division is refused by name: random splits of dims
/// by name, states and parameters in parts, meshes of 2, 3, 4 and 2x2 processes. oracle_shard.cpp.
Complaint divided(const Case& from);

/// Of the graph: oracles_graph.cpp. Of compiled code: oracles_compiled.cpp.
std::span<const Oracle> graph_oracles();
std::span<const Oracle> compiled_oracles();

}  // namespace lathe::fuzz
