#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "passes/compile_pipeline.h"
#include "tools/options/division.h"

namespace lathe::tools {

/// Options that change the graph that is compiled: what run and verify compile, dump and opt show by the same words.
struct GraphOptions {
  std::string dtype, precision = "f32";
  LowerOptions lower = {};
};
/// Adds --dtype, --precision, and those of add_lower_options().
void add_graph_options(CLI::App& command, GraphOptions& options);

/// What --dtype and --precision ask for.
WholeGraph whole_graph(const GraphOptions& options);
/// The graph as they make it.
ir::Graph as_asked(const ir::Graph& graph, const GraphOptions& options);

/// Options of commands that show a graph on its way through the passes.
struct PassOptions {
  GraphOptions graph;
  std::vector<std::string> dims;
  Division division;
  bool evaluation = false;

  /// Everything that is asked for of the graph as a whole; `sizes` are to be known.
  ir::Pipeline whole_graph_passes(const DimBindings& sizes) const;
};
/// Adds --dim, --evaluation, and those of add_graph_options() and add_division().
void add_pass_options(CLI::App& command, PassOptions& options, const std::string& dim_doc);

}  // namespace lathe::tools
