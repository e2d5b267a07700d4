#include <fmt/core.h>

#include "models/import/onnx/model_importer.h"

/// The graphs that attributes of a node have: branches, bodies of loops, and functions of tensors.
namespace lathe::onnx {

using importing::Results;
using importing::Value;

std::map<std::string, importing::SourceBody, std::less<>> ModelImporter::bodies(const NodeScope& scope,
                                                                                const NodeProto& node) {
  std::map<std::string, importing::SourceBody, std::less<>> all;
  for (const AttributeProto& attribute : node.attributes)
    if (attribute.graph)
      all.emplace(attribute.name, [&](std::vector<Value> inputs, const Graph& graph) {
        return add_body(scope, node, attribute, std::move(inputs), graph);
      });
  return all;
}

/// A body sees the values around its node.
Results ModelImporter::add_body(const NodeScope& scope, const NodeProto& node, const AttributeProto& body,
                                std::vector<Value> inputs, const Graph& graph) {
  NodeScope inner{.around = &scope,
                  .opsets = scope.opsets,
                  .graph = &graph,
                  .path = scope.path,
                  .attributes = scope.attributes,
                  .depth = scope.depth + 1};
  if (inner.depth > most_nested) fail(scope, node, "too many nested branches and calls", "import_file");
  if (inputs.size() != body.graph->inputs.size())
    fail(scope, node,
         fmt::format("{} has {} inputs, and the node gives {} values", body.name, body.graph->inputs.size(),
                     inputs.size()),
         "import_file");
  for (std::size_t i = 0; i < inputs.size(); ++i) define(inner, body.graph->inputs[i].name, std::move(inputs[i]));
  add_initializers(inner, *body.graph);
  add_nodes(inner, body.graph->nodes);
  Results results;
  for (const ValueProto& output : body.graph->outputs) {
    const Value* const value = inner.find(output.name);
    if (!value) fail(scope, node, fmt::format("{} does not compute its outputs", body.name), "import_file");
    results.push_back(*value);
  }
  return results;
}

}  // namespace lathe::onnx
