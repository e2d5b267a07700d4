#pragma once

#include <string>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Prints the regions of a plan in the order in which they run: their domains, and their nodes with their roles.
/// `stored` marks values that have memory. The last lines list the nodes that their readers compute, and constants
/// that have memory. Ids are positions in Graph::nodes.
///
///   region 1 attention over [B, h=8, n_seq, n_seq]: rows along dim 2
///     scores                  %4 contract : f32[B, h=8, n_seq, n_seq]   // mha.cpp:14
///     reduction       stored  %6 max : f32[B, h=8, n_seq, 1]            // mha.cpp:16
///     output product  stored  %9 contract : f32[B, h=8, n_seq, d_k=64]  // mha.cpp:17
///
/// Dims of members are printed if they are not those of the domain in order: `dims [0, 2, -] of [0, 2, 1]` are
/// FusionPlan::dims and space; `of` is left out if both are equal. `in %12` is the member in whose storage a value
/// is.
std::string print_regions(const FusionPlan& plan, const ir::Graph& graph);

/// Prints the regions, then the graph with the same ids. parse_fused_graph (parse_regions.h) reads this text.
std::string print_fused_graph(const FusionPlan& plan, const ir::Graph& graph);

}  // namespace lathe
