#pragma once

#include <cstdint>

#include "ir/tensor/graph.h"

namespace lathe {

/// When to pad operands of matmuls. The origin of the defaults is not recorded.
struct PaddingLimits {
  std::int64_t unpadded_depth = 256, padded_rows = 64;  ///< more k, and this many rows, amortize padding an odd k
  std::int64_t padded_columns_rows = 512;               ///< this many rows make padding odd result columns pay off
  bool operator==(const PaddingLimits&) const = default;
};

/// Pads operands of bf16, f16 and f32 matmuls with an argument, if the matmul sums along rows of an odd length, such
/// as those of the gradient of 50257 words' logits. Rows are padded with zeros to a multiple of 8 elements, also for
/// other matmuls that read the same operand. They then start at multiples of 16 bytes, so that thread blocks can copy
/// them. The summed dim is padded in both operands and adds 0 * 0; a padded dim of the result is sliced afterwards.
///
///   %1 = contract %g, %w {spec="av,vd->ad"}       %1 = pad %g {dim=1, low=0, high=7}    : bf16[n, 50264]
///   %2 = contract %g, %x {spec="av,ad->vd"}  ->   %2 = pad %w {dim=0, low=0, high=7}
///                                                 %3 = contract %1, %2 {spec="av,vd->ad"}
///                                                 %4 = contract %1, %x {spec="av,ad->vd"} : bf16[50264, d]
///                                                 %5 = slice %4 {dim=0, start=0, stop=50257}
///
/// Applies to rows of a known and large length, and to arguments with many rows, so that the copy is small compared
/// to the matmul. Of f32 operands, only computed ones are padded, to a multiple of 4.
///
/// Matmuls of many rows with an argument that have an odd number of columns, such as logits, also get padded columns,
/// if reductions fold their rows and they are not returned: they are then stored and read 16 bytes at a time. Values
/// that are computed from them element by element have the longer rows already. The gradient of a loss is therefore
/// stored in the form that later matmuls read, without a copy:
///
///   %1 = contract %x, %w {spec="ad,vd->av"}        %1 = pad %w {dim=0, low=0, high=7}
///   %2 = f(%1, max %1)                             %2 = contract %x, %1                    : bf16[n, 50264]
///   %3 = contract %2, %w {spec="av,vd->ad"}   ->   %3 = slice %2 {dim=1, start=0, stop=50257}
///                                                  %4 = where iota < 50257, f(%2, max %3), 0
///                                                  %5 = contract %4, %1 {spec="av,vd->ad"}
ir::Graph pad_products(const ir::Graph& graph, const PaddingLimits& limits = {});

}  // namespace lathe
