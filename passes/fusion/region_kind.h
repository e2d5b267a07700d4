#pragma once

#include <cstdint>
#include <string_view>

namespace lathe {

/// What a fused region computes.
enum class RegionKind : std::uint8_t {
  rows,       ///< element-wise nodes over one domain, with reductions over its innermost dims
  product,    ///< a contraction and the element-wise nodes over its result
  columns,    ///< a reduction over outer dims
  scatter,    ///< a scatter_add or an update_rows
  attention,  ///< rows of scores and what is made of them, and the products that sum them: see attention.h
};
inline constexpr int region_kinds = 5;
/// "rows", "product", "columns", "scatter" or "attention".
std::string_view name(RegionKind kind);

}  // namespace lathe
