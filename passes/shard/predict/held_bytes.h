#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::shard {

/// A gathered value that a process has, of known size.
struct GatheredBytes {
  std::string parameter;  ///< or another argument, of which it is made
  std::int64_t bytes = 0;
  bool ahead = false;  ///< of its readers, while others are in use
};

/// What a process holds, in bytes with the dims of its graph.
struct HeldBytes {
  Dim parameters = 0, states = 0, inputs = 0;
  /// The most of gathered values at a time, in the order of the graph, with those that come ahead of their readers
  /// (ir/tensor/mesh/exchange_window.h); those of unknown sizes are left out.
  std::int64_t gathered = 0;
  std::vector<GatheredBytes> most_gathered = {};  ///< those values where it has most of them, the largest first

  Dim all() const { return parameters + states + inputs + Dim(gathered); }
};
HeldBytes held_bytes(const ir::Graph& graph);

}  // namespace lathe::shard
