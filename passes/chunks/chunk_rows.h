#pragma once

#include <cstdint>
#include <vector>

#include "ir/options/row_chunks.h"
#include "passes/chunks/row_region.h"

namespace lathe {

/// A region, the dim of the product's result along which it is cut, and the number of chunks. If it is not cut,
/// `region.reason` is the reason.
struct ChunkedRegion {
  RowRegion region;
  int rows = 0;
  std::int64_t chunks = 1;
};

/// Returns the decision for each product whose rows and columns come from different operands, in order. Products that
/// are too small to be cut in any case are omitted unless `all`.
std::vector<ChunkedRegion> find_row_chunks(const ir::Graph& graph, const RowChunks& options, bool all = false);

/// Splits large matmuls into row chunks of about equal size, up to the point where their columns are gone. Reductions
/// of the columns, and matmuls with them, are concatenated; sums over rows are added up. Of the logits of a language
/// model and of their gradient, only one chunk then exists at a time. Applies if row_region finds the roles, sizes
/// are known, and there are at least two chunks. Sums over rows are computed in another order than before.
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
