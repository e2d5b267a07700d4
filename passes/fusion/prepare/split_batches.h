#pragma once

#include "ir/tensor/graph.h"

namespace lathe {

/// If scores in merged batches [N*h, S, T] are viewed as [N, h, S, T], or combined with a value that was merged,
/// computes them with these dims split. Then nothing between two matmuls changes its shape, and nothing is copied to
/// merge dims. All values that are computed with them by point-wise nodes, reductions and matmuls are split too:
/// through broadcasts, draws and permutations, up to arguments, matmuls, and merges that are undone. Nothing is split
/// if a value in between is an output or has a reader that cannot be split, or if no value is saved.
///
///   %3 = view %q {N*h, S, d}; %4 = view %k {N*h, T, d}            %3 = contract %q, %k {"abce,abde->abcd"}
///   %5 = contract %3, %4 {"abd,acd->abc"}                    ->   %4 = mul %3, %scale          : [N, h, S, T]
///   %6 = mul %5, %scale
///   %7 = view %6 {N, h, S, T}
ir::Graph split_batches(ir::Graph graph);

}  // namespace lathe
