#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/object_store.h"
#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

/// A description of what is wrong, if anything.
using Complaint = std::optional<std::string>;

/// Returns the store of this process for code compiled by oracles, which use many of the same kernels.
ObjectStore& compiled_kernels();

/// A property of every valid graph.
struct Oracle {
  std::string_view name, doc;
  Complaint (*check)(const Case&);
  /// Returns smaller checks of the case; if it fails, one of them fails too. Null if there is only one check.
  std::vector<Case> (*parts)(const Case&) = nullptr;
};

/// Matmuls in row chunks, and gradients through them, compute the same: for the graph with a loss on top.
Complaint in_chunks(const Case& from);

/// Pairs of loops in segments of random lengths have the same results, to the bit: oracle_segments.cpp.
Complaint in_segments(const Case& from);

/// Any values of the graph as its only outputs are the same in compiled code, with memory initially filled with NaNs,
/// and in the interpreter: oracle_values.cpp. The second function returns a case for each set of values.
Complaint exposed(const Case& from);
std::vector<Case> exposures(const Case& from);

/// Several processes together compute the same as one process, or the sharding is rejected with a known label. Random
/// splits of dims by name, sharded states and parameters, meshes of 2, 3, 4 and 2x2 processes: oracle_shard.cpp.
Complaint divided(const Case& from);

/// A C library of the graph has the results of compile(), to the bit: oracle_library.cpp.
Complaint in_library(const Case& from);

/// The text of each form below the graph, on a CPU and a GPU, parses to the same form: kernels, fused graphs, and
/// programs: oracle_forms.cpp.
Complaint loops(const Case& from);
Complaint regions(const Case& from);
Complaint programs(const Case& from);

/// For graphs: oracles_graph.cpp. For compiled code: oracles_compiled.cpp.
std::span<const Oracle> graph_oracles();
std::span<const Oracle> compiled_oracles();

}  // namespace lathe::fuzz
