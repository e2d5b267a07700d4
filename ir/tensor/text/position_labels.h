#pragma once

#include <string>

#include "ir/tensor/node_map.h"
#include "ir/tensor/text/printer.h"

/// Pieces of the texts of fused graphs and programs.
namespace lathe::ir {

/// Returns "%x" for an argument, and "%12" for Graph::nodes[12] otherwise. parse_written_graph (parser_detail.h)
/// gives values the positions of their labels.
NodeMap<std::string> position_labels(const Graph& graph);

/// Returns the text of a graph with these labels of its values.
std::string print(const Graph& graph, const NodeMap<std::string>& labels, const PrintOptions& options = {});

std::string print_check(const DimCheck& check, const PrintOptions& options = {});

}  // namespace lathe::ir
