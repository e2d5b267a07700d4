#pragma once

#include <cstdint>
#include <vector>

#include "ir/machine/row_chunks.h"
#include "passes/chunks/row_region.h"

namespace lathe {

/// A region, and along which dim of the product's result it is cut into how many chunks. None: it stays whole, as
/// `region.reason` says.
struct ChunkedRegion {
  RowRegion region;
  int rows = 0;
  std::int64_t chunks = 1;
};

/// What becomes of each product whose rows and columns come from different operands, in their order. Those that are
/// too small to be cut, whatever is made of them, are left out unless `all`.
std::vector<ChunkedRegion> find_row_chunks(const ir::Graph& graph, const RowChunks& options, bool all = false);

/// Goes over the rows of large products in chunks of near-equal size, up to the point where their columns are gone
/// again: what the columns fold to and products with them are joined, sums over rows are added up. So of the logits
/// of a language model and of their gradient only a chunk exists at a time. It is done where row_region finds the
/// roles, sizes are known, and there are two chunks at least. Sums over rows come out in another order than before.
///
///   %1 = contract %x, %w {"nd,vd->nv"}     %1 = slice %x {dim=0, start=0, stop=1024}      x: [2048, d]
///   %2 = max %1 {dims=[1]}                 %2 = contract %1, %w {"nd,vd->nv"}             [1024, v]
///   %3 = sub %1, %2                   ->   %3 = max %2 {dims=[1]}
///   ...                                    ...
///   %8 = contract %7, %w {"nv,vd->nd"}     %8 = contract %7, %w {"nv,vd->nd"}
///   %9 = contract %7, %x {"nv,nd->vd"}     %9 = contract %7, %1 {"nv,nd->vd"}
///                                          %10 = slice %x {dim=0, start=1024, stop=2048}
///                                          ...
///                                          %18 = contract %16, %10 {"nv,nd->vd"}
///                                          %19 = add %18, %9
///                                          %20 = concat %8, %17 {dim=0}
ir::Graph chunk_rows(ir::Graph graph, const RowChunks& options = {});

}  // namespace lathe
