#pragma once

#include <CLI/App.hpp>
#include <string>

#include "ir/tensor/graph.h"
#include "models/pretrained/quantize_weights.h"

namespace lathe::tools {

/// Adds --precision f32
/// bf16
/// f16 for mixed precision, see passes/transforms/dtypes/mixed_precision.h.
CLI::Option* add_precision_option(CLI::App& command, std::string& precision);

/// Adds --weights stored
/// q8: the in-memory format of the weights of a Hugging Face directory.
CLI::Option* add_weights_option(CLI::App& command, std::string& weights);
pretrained::WeightFormat weight_format(const std::string& weights);

/// Returns the graph unchanged for f32, otherwise in mixed precision.
ir::Graph with_precision(const ir::Graph& graph, const std::string& precision);

}  // namespace lathe::tools
