#pragma once

#include <CLI/App.hpp>
#include <string>

#include "ir/tensor/graph.h"

namespace lathe::tools {

/// Adds --precision f32|bf16|f16: mixed precision, see passes/transforms/mixed_precision.h.
CLI::Option* add_precision_option(CLI::App& command, std::string& precision);

/// The graph as it is at f32, else in mixed precision.
ir::Graph with_precision(const ir::Graph& graph, const std::string& precision);

}  // namespace lathe::tools
