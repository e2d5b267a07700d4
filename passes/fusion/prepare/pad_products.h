#pragma once

#include "ir/machine/gpu_product_sizes.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// Products of bf16 and f16 with an argument that sum along rows of an odd length, as those of the gradient of 50257
/// words' logits are, read them padded with zeros to a multiple of 8, and so do other products that read the same:
/// then rows start at multiples of 16 bytes, and blocks of threads can copy them. What is summed over is padded in
/// both operands and adds 0 * 0; a padded dim of the result is cut again.
///
///   %1 = contract %g, %w {spec="av,vd->ad"}       %1 = pad %g {dim=1, low=0, high=7}    : bf16[n, 50264]
///   %2 = contract %g, %x {spec="av,ad->vd"}  ->   %2 = pad %w {dim=0, low=0, high=7}
///                                                 %3 = contract %1, %2 {spec="av,vd->ad"}
///                                                 %4 = contract %1, %x {spec="av,ad->vd"} : bf16[50264, d]
///                                                 %5 = slice %4 {dim=0, start=0, stop=50257}
///
/// Of rows whose length is known and long, and arguments of many rows, so that the copy is small beside the product.
ir::Graph pad_products(const ir::Graph& graph, const GpuProductSizes& sizes = {});

}  // namespace lathe
