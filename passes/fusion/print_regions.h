#pragma once

#include <string>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Prints the regions of a plan in the order in which they run: their domains, and their nodes with their roles.
/// `stored` marks values that have memory. The last line lists the nodes that their readers compute.
///
///   region 1 attention over [B, h=8, n_seq, n_seq]: rows along dim 2
///     scores                  %4 contract : f32[B, h=8, n_seq, n_seq]   mha.cpp:14
///     reduction       stored  %6 max : f32[B, h=8, n_seq, 1]            mha.cpp:16
///     output product  stored  %9 contract : f32[B, h=8, n_seq, d_k=64]  mha.cpp:17
std::string print_regions(const FusionPlan& plan, const ir::Graph& graph);

}  // namespace lathe
