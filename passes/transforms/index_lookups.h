#pragma once

#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

/// Where a graph looks elements up by index, so that after a kernel met an index out of range the host can say which:
/// kernels check indices, but keep neither the value nor its position.
namespace lathe::ir {

struct IndexLookup {
  std::string op;  ///< of the user's graph: "gather", "cross_entropy"
  Location loc;
  Dim size;       ///< indices lie in [0, size)
  ValueId index;  ///< in IndexLookups::graph; invalid where computing it again would be more than reading elements
};

struct IndexLookups {
  Graph graph;                       ///< what computes the indices from the arguments, in primitives
  std::vector<IndexLookup> lookups;  ///< in the order of the user's graph
};

/// The lookups of a graph, those inside of composites too. Indices are computed again where they come from arguments
/// that keep their values, through views, element-wise ops and other lookups.
IndexLookups index_lookups(const Graph& graph);

/// Throws UserError [index_range] for the first index that is out of range: at the user's line, with the value, its
/// position and what holds it, such as an input. `arguments` holds those of lookups.graph, and may hold more. Where
/// no such index is found, but only one lookup was left out, it names that one; else it returns.
void throw_index_error(const IndexLookups& lookups, const Tensors& arguments, const DimBindings& dims);

}  // namespace lathe::ir
