#include "tools/options/precision_option.h"

#include <CLI/CLI.hpp>

#include "passes/compile/compilation.h"

namespace lathe::tools {

CLI::Option* add_precision_option(CLI::App& command, std::string& precision) {
  return command
      .add_option("--precision", precision,
                  "Compute precision: f32, or bf16/f16 mixed precision (parameters stay f32)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
}

CLI::Option* add_weights_option(CLI::App& command, std::string& weights) {
  return command
      .add_option("--weights", weights,
                  "Weight format of a model directory: stored (as in its files), or q8 (8-bit matrices, half the "
                  "memory of bf16)")
      ->check(CLI::IsMember({"stored", "q8"}))
      ->capture_default_str();
}

pretrained::WeightFormat weight_format(const std::string& weights) {
  return weights == "q8" ? pretrained::WeightFormat::q8 : pretrained::WeightFormat::stored;
}

ir::Graph with_precision(const ir::Graph& graph, const std::string& precision) {
  if (precision == "f32") return graph;
  return requested_graph(graph, {.low_precision = parse_dtype(precision)});
}

}  // namespace lathe::tools
