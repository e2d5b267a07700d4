#pragma once

#include <string>

#include "ir/tensor/graph.h"

/// Pictures of graphs.
namespace lathe::tools {

/// Graphviz text: a cluster a module scope, shapes on edges.
std::string dot_text(const ir::Graph& graph);

/// One page that needs nothing else: the graph as JSON and a script that lays it out, module scopes collapsed at
/// first.
std::string html_page(const ir::Graph& graph);

}  // namespace lathe::tools
