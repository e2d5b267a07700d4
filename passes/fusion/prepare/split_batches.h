#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// Where scores in merged batches [N*h, S, T] are shown as [N, h, S, T], or meet what was merged, they are computed
/// with these dims split, so that nothing between two products changes its shape and nothing is copied to be merged.
/// All that is computed with them point-wise, by reductions and by products is split along, through broadcasts, draws
/// and permutations, up to arguments, products, and merges that are taken back. Nothing is split where a value in
/// between is an output, or read in a way that cannot be split, or where no value is spared.
///
///   %3 = view %q {N*h, S, d}; %4 = view %k {N*h, T, d}            %3 = contract %q, %k {"abce,abde->abcd"}
///   %5 = contract %3, %4 {"abd,acd->abc"}                    ->   %4 = mul %3, %scale          : [N, h, S, T]
///   %6 = mul %5, %scale
///   %7 = view %6 {N, h, S, T}
ir::Graph split_batches(ir::Graph graph);

}  // namespace lathe
