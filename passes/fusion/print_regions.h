#pragma once

#include <string>

#include "passes/fusion/fusion.h"

namespace lathe {

/// The regions of a plan for a reader, in the order in which they run: what each runs over, and its nodes with their
/// roles; `stored` are the values that have memory. The last line has the nodes that their readers compute.
///
///   region 1 attention over [B, h=8, n_seq, n_seq]: rows along dim 2
///     scores                  %4 contract : f32[B, h=8, n_seq, n_seq]   mha.cpp:14
///     reduction       stored  %6 max : f32[B, h=8, n_seq, 1]            mha.cpp:16
///     output product  stored  %9 contract : f32[B, h=8, n_seq, d_k=64]  mha.cpp:17
std::string print_regions(const FusionPlan& plan, const ir::Graph& graph);

}  // namespace lathe
