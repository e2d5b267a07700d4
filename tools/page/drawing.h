#pragma once

#include <string>

#include "ir/tensor/graph.h"
#include "passes/fusion/fusion.h"

/// Drawings of graphs.
namespace lathe::tools {

/// Returns Graphviz text with one cluster per module scope and shapes as edge labels.
std::string dot_text(const ir::Graph& graph);

/// What a page shows of a graph's compilation.
struct PageExtras {
  const FusionPlan* regions = nullptr;  ///< groups the nodes by fused region instead of by module
  std::string memory = {};              ///< memory_svg(): shown by a button
};

/// Returns a self-contained page: the graph as JSON and a script that lays it out. Module scopes, or fused regions,
/// are collapsed initially.
std::string html_page(const ir::Graph& graph, const PageExtras& extras = {});

}  // namespace lathe::tools
