#pragma once

#include <string>

#include "ir/tensor/graph.h"

/// Drawings of graphs.
namespace lathe::tools {

/// Returns Graphviz text with one cluster per module scope and shapes as edge labels.
std::string dot_text(const ir::Graph& graph);

/// Returns a self-contained page: the graph as JSON and a script that lays it out. Module scopes are collapsed
/// initially.
std::string html_page(const ir::Graph& graph);

}  // namespace lathe::tools
