#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::shard {

/// A gathered value of known size on a process.
struct GatheredBytes {
  std::string parameter;  ///< or another argument that it depends on
  std::int64_t bytes = 0;
  bool ahead = false;  ///< of its readers, while others are in use
};

/// The memory of a process, in bytes in terms of the dims of its graph.
struct HeldBytes {
  Dim parameters = 0, states = 0, inputs = 0;
  /// The maximum of gathered values at a time, in the order of the graph, including those gathered ahead of their
  /// readers (ir/tensor/mesh/collective_window.h). Values of unknown size are excluded.
  std::int64_t gathered = 0;
  std::vector<GatheredBytes> most_gathered = {};  ///< the values at this maximum, the largest first

  Dim all() const { return parameters + states + inputs + Dim(gathered); }
};
HeldBytes held_bytes(const ir::Graph& graph);

}  // namespace lathe::shard
