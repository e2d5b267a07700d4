#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "passes/compile/compilation.h"
#include "passes/compile/request.h"
#include "tools/options/division.h"

namespace lathe::tools {

/// Options that change the compiled graph. They are the same for run, verify, dump and opt.
struct GraphOptions {
  std::string dtype, precision = "f32";
  LowerOptions lower = {};
};
/// Adds --dtype, --precision, and those of add_lower_options() and add_packed_weights().
void add_graph_options(CLI::App& command, GraphOptions& options);

/// Returns the graph with --dtype and --precision applied.
ir::Graph as_asked(const ir::Graph& graph, const GraphOptions& options);

/// Throws UserError [dim_option] unless every dim has a size for the memory plan.
void require_plan_sizes(const Compilation& now);

/// Options of commands that print a graph during its compilation.
struct PassOptions {
  GraphOptions graph;
  std::vector<std::string> dims;
  Division division;
  bool evaluation = false;

  /// Returns the compilation that the options describe, with the dims in `sizes` bound to constants.
  CompileRequest request(const DimBindings& sizes) const;
};
/// Adds --dim, --evaluation, and those of add_graph_options() and add_division().
void add_pass_options(CLI::App& command, PassOptions& options, const std::string& dim_doc);

}  // namespace lathe::tools
