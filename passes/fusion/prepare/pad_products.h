#pragma once

#include "ir/machine/gpu_product_sizes.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// Products of bf16, f16 and f32 with an argument that sum along rows of an odd length, as those of the gradient of
/// 50257 words' logits are, read them padded with zeros to a multiple of 8, and so do other products that read the
/// same: then rows start at multiples of 16 bytes, and blocks of threads can copy them. What is summed over is padded
/// in both operands and adds 0 * 0; a padded dim of the result is cut again.
///
///   %1 = contract %g, %w {spec="av,vd->ad"}       %1 = pad %g {dim=1, low=0, high=7}    : bf16[n, 50264]
///   %2 = contract %g, %x {spec="av,ad->vd"}  ->   %2 = pad %w {dim=0, low=0, high=7}
///                                                 %3 = contract %1, %2 {spec="av,vd->ad"}
///                                                 %4 = contract %1, %x {spec="av,ad->vd"} : bf16[50264, d]
///                                                 %5 = slice %4 {dim=0, start=0, stop=50257}
///
/// Of rows whose length is known and long, and arguments of many rows, so that the copy is small beside the product.
/// Of f32 only what is computed is padded, to a multiple of 4.
///
/// Products of many rows with an argument of which an odd number of columns comes, as logits, get padded columns too,
/// where reductions fold their rows and nothing returns them: they are stored and read 16 bytes at a time. What is
/// computed from them element by element has the longer rows already, so that the gradient of a loss is written as
/// the products behind read it, and not copied:
///
///   %1 = contract %x, %w {spec="ad,vd->av"}        %1 = pad %w {dim=0, low=0, high=7}
///   %2 = f(%1, max %1)                             %2 = contract %x, %1                    : bf16[n, 50264]
///   %3 = contract %2, %w {spec="av,vd->ad"}   ->   %3 = slice %2 {dim=1, start=0, stop=50257}
///                                                  %4 = where iota < 50257, f(%2, max %3), 0
///                                                  %5 = contract %4, %1 {spec="av,vd->ad"}
ir::Graph pad_products(const ir::Graph& graph, const GpuProductSizes& sizes = {});

}  // namespace lathe
