#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/generator.h"

namespace lathe::fuzz {

/// Something that holds of every valid graph. `check` says what is wrong with a case, if anything.
struct Oracle {
  std::string_view name, doc;
  std::optional<std::string> (*check)(const Case&);
};

/// Of the graph: oracles_graph.cpp. Of compiled code: oracles_compiled.cpp.
std::span<const Oracle> graph_oracles();
std::span<const Oracle> compiled_oracles();

}  // namespace lathe::fuzz
