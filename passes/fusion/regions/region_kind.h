#pragma once

#include <cstdint>
#include <string_view>

namespace lathe {

/// What a fused region computes.
enum class RegionKind : std::uint8_t {
  rows,        ///< elementwise nodes over one domain, with reductions over its innermost dims
  product,     ///< a contraction and the elementwise nodes over its result
  columns,     ///< a reduction over outer dims
  scatter,     ///< a scatter_add or an update_rows
  attention,   ///< rows of scores and the values computed from them, and the matmuls that sum them: see
               ///< fuse_attention.h
  scan,        ///< a cumsum or linear_recurrence
  sort,        ///< an argsort or a top_k
  grouped,     ///< a grouped_matmul, or each segment_outer of the same operands
  triangular,  ///< a cholesky, a solve_triangular, or an orthonormal basis of a matrix
  collective,  ///< a collective: no kernel computes it
  loop,        ///< all results of a loop: the regions of its body compute them
};
inline constexpr int region_kinds = 11;
/// "rows", "product", "columns", "scatter", "attention", "scan", "sort", "grouped", "triangular", "collective"
/// or "loop".
std::string_view name(RegionKind kind);

}  // namespace lathe
