#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/ops/loop_parts.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// A loop and a later one that reads its stacked outputs as sequences, such as a forward loop and its gradient. The
/// outputs that only the reader needs do not have to be saved: the reader can run the saver's iterations again.
struct LoopPair {
  std::optional<ir::Body> body;  ///< the body that contains both loops; nothing: the graph itself
  Dim runs = 1;                  ///< how often the code around them runs
  ir::ValueId saver, reader;     ///< the first node of each loop
  std::vector<int> again;        ///< results of the saver that only the reader reads, in order
  std::string left_alone;        ///< why no output can be dropped; empty if `again` has results
};

/// Returns the nodes of the loop that `first` belongs to, by result; invalid ids for results without a node.
std::vector<ir::ValueId> nodes_of_loop(const ir::Graph& graph, ir::ValueId first);

/// Returns a pair for each loop of the graph, and of the bodies of its loops, whose outputs another loop reads as
/// sequences. If several loops read them, the reader is the one that needs most outputs alone. A loop is in at most
/// one pair that can be rewritten.
std::vector<LoopPair> find_loop_pairs(const ir::Graph& graph);

}  // namespace lathe
