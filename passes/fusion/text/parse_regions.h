#pragma once

#include <string_view>

#include "passes/fusion/fusion.h"

namespace lathe {

/// A graph and its regions.
struct FusedGraph {
  ir::Graph graph;
  FusionPlan regions;
};

/// Parses the text of print_fused_graph: regions, then their graph. The result equals what was printed, apart from
/// FusionPlan::attentions, which is null. Comments, and with them the locations of members, are skipped.
///
/// Throws ParseError for syntax errors, unknown values, roles, ops and types that do not match the graph, values that
/// are in no region or in two, and regions that read values of later ones. Throws the UserErrors of ir::parse_graph.
FusedGraph parse_fused_graph(std::string_view text, std::string_view file = "<text>");

}  // namespace lathe
