#pragma once

#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

/// A place where a graph looks elements up by index. After a kernel has met an index out of range, the host uses it
/// to find that index: kernels check indices, but keep neither the value nor its position.
namespace lathe::ir {

struct IndexLookup {
  std::string op;  ///< of the user's graph: "gather", "cross_entropy"
  Location loc;
  Dim size;  ///< indices must be in [0, size)
  /// In IndexLookups::graph; invalid if computing it again needs more than reading elements.
  ValueId index;
};

struct IndexLookups {
  Graph graph;                       ///< computes the indices from the arguments, in primitives
  std::vector<IndexLookup> lookups;  ///< in the order of the user's graph
};

/// Returns the lookups of a graph, including those inside composites. Indices are computed again if they come from
/// arguments that keep their values, through views, elementwise ops and other lookups.
IndexLookups index_lookups(const Graph& graph);

/// Throws UserError [index_range] for the first index that is out of range: at the user's line, with the value, its
/// position and the argument or node that holds it. `arguments` must have those of lookups.graph, and may have more.
/// If no such index is found, but the lookups without an index are all at one line, the error is for that line.
/// Otherwise the function returns.
void throw_index_error(const IndexLookups& lookups, const Tensors& arguments, const DimBindings& dims);

}  // namespace lathe::ir
