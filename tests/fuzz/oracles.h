#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/generator.h"

namespace lathe::fuzz {

/// What is wrong, if anything.
using Complaint = std::optional<std::string>;

/// Something that holds of every valid graph.
struct Oracle {
  std::string_view name, doc;
  Complaint (*check)(const Case&);
};

/// That products in chunks of rows, and gradients through them, mean the same: of the graph with a loss on top.
Complaint in_chunks(const Case& from);

/// Of the graph: oracles_graph.cpp. Of compiled code: oracles_compiled.cpp.
std::span<const Oracle> graph_oracles();
std::span<const Oracle> compiled_oracles();

}  // namespace lathe::fuzz
