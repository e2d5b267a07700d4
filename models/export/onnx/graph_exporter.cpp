#include "models/export/onnx/graph_exporter.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/tensor/op/op.h"
#include "models/export/onnx/exportable_graph.h"
#include "models/export/onnx/nodes/node_exporter.h"
#include "passes/transforms/sizes/known_sizes.h"

namespace lathe::onnx {

namespace {

constexpr std::int64_t first_opset = 18, last_opset = 23;

/// Returns the version of the file format that came with an opset.
std::int64_t format_version(std::int64_t opset) { return opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : 11; }

bool is_stored(const ir::Node& node) { return node.op == &ir::ops::parameter || node.op == &ir::ops::state; }

/// Returns for each node whether it is an operand or a result.
std::vector<bool> used_nodes(const ir::Graph& graph) {
  std::vector<bool> used(static_cast<std::size_t>(graph.size()));
  for (const ir::Node& node : graph.nodes)
    for (const ir::ValueId operand : node.operands) used[static_cast<std::size_t>(operand.index)] = true;
  for (const ir::ValueId result : graph.results()) used[static_cast<std::size_t>(result.index)] = true;
  return used;
}

/// A complex value as a pair of reals for each element.
std::pair<DType, std::vector<std::int64_t>> real_type(const HostTensor& value) {
  std::vector<std::int64_t> shape = value.shape();
  if (!is_complex(value.dtype())) return {value.dtype(), std::move(shape)};
  shape.push_back(2);
  return {real_part(value.dtype()), std::move(shape)};
}

/// Throws UserError [export_values] unless a value has the type of its argument, whose sizes may be unknown.
void require_type(const ir::Node& node, const HostTensor& value) {
  const auto [dtype, shape] = real_type(value);
  bool fits = dtype == node.type.dtype && static_cast<int>(shape.size()) == node.type.rank();
  for (int i = 0; fits && i < node.type.rank(); ++i)
    fits =
        node.type.shape[i].value().value_or(shape[static_cast<std::size_t>(i)]) == shape[static_cast<std::size_t>(i)];
  if (!fits)
    throw UserError(node.loc, node.op->name.value,
                    fmt::format("the value of {} is {}{}, and the graph has {}", node.name, name(value.dtype()),
                                shape_to_string(value.shape()), node.type.to_string()),
                    "export_values");
}

/// Throws UserError [export_values] for parameters and states without values, or with values of another type.
void require_values(const ir::Graph& graph, const Parameters& parameters) {
  const std::vector<bool> used = used_nodes(graph);
  std::vector<std::string_view> missing;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (!is_stored(node) || !used[static_cast<std::size_t>(id.index)]) continue;
    if (!parameters.contains(node.name))
      missing.push_back(node.name);
    else
      require_type(node, parameters.get(node.name));
  }
  if (missing.empty()) return;
  throw UserError(fmt::format("{} of @{} have no values", list_of(missing), graph.name), "export_values",
                  "an ONNX file has the values of parameters and states: give them too");
}

/// Returns the unknown of a size `scale * unknown + rest`, and its value if the size is `number`.
std::optional<std::pair<std::string, std::int64_t>> solved(const Dim& size, std::int64_t number) {
  const std::vector<std::string> unknowns = size.unknowns();
  if (unknowns.size() != 1) return std::nullopt;
  std::int64_t scale = 0, rest = 0;
  for (const Dim::Term& term : size.terms()) {
    if (term.monomial.empty())
      rest = term.coefficient;
    else if (term.monomial == Dim::Monomial{{unknowns[0], 1}})
      scale = term.coefficient;
    else
      return std::nullopt;
  }
  return std::pair(unknowns[0], (number - rest) / scale);
}

/// Sizes of parameters and states that their values determine.
DimBindings sizes_of_values(const ir::Graph& graph, const Parameters& parameters) {
  DimBindings sizes;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (!is_stored(node) || !parameters.contains(node.name)) continue;
    const std::vector<std::int64_t> shape = real_type(parameters.get(node.name)).second;
    for (int i = 0; i < node.type.rank(); ++i)
      if (const auto found = solved(node.type.shape[i], shape[static_cast<std::size_t>(i)])) sizes.insert(*found);
  }
  return sizes;
}

ir::Graph prepared(const ir::Graph& graph, const Parameters& parameters, std::int64_t opset) {
  if (opset < first_opset || opset > last_opset)
    throw UserError(fmt::format("opset {} is not supported", opset), "export_opset",
                    fmt::format("choose one from {} to {}", first_opset, last_opset));
  ir::Graph result = exportable_graph(graph, opset);
  require_values(result, parameters);
  const DimBindings sizes = sizes_of_values(result, parameters);
  if (!sizes.empty()) result = ir::with_sizes(result, sizes);
  for (const ir::ValueId id : result.arguments())
    if (is_stored(result[id]) && parameters.contains(result[id].name))
      require_type(result[id], parameters.get(result[id].name));
  return result;
}

}  // namespace

GraphExporter::GraphExporter(const ir::Graph& graph, const Parameters& parameters, std::int64_t opset)
    : opset_(opset), parameters_(parameters), graph_(prepared(graph, parameters, opset)) {
  to_.graph().name = to_.keep(graph_.name);
  const std::vector<bool> used = used_nodes(graph_);
  std::vector<Text> arguments;
  for (const ir::ValueId id : graph_.arguments()) {
    arguments.push_back(to_.keep(graph_[id].name));
    to_.reserve(arguments.back());
    add_argument(graph_[id], used[static_cast<std::size_t>(id.index)]);
  }
  for (const ir::Output& output : graph_.outputs)
    if (!to_.reserve(output.name))
      throw UserError(fmt::format("the output {} of @{} has the name of an argument", output.name, graph_.name),
                      "export_name", "values of an ONNX file have one name each: rename the output");
  DimValues dims(to_, graph_);
  NodeExporter nodes(graph_, arguments, {to_, dims, opset});
  for (const ir::Output& output : graph_.outputs) nodes.wish(output.value, to_.keep(output.name));
  nodes.add_nodes();
  add_outputs(nodes);
}

/// A parameter that nothing uses has no value in the file.
void GraphExporter::add_argument(const ir::Node& node, bool is_used) {
  if (!is_stored(node)) {
    to_.graph().inputs.push_back(to_.described(node.name, node.type));
  } else if (is_used) {
    const HostTensor& value = parameters_.get(node.name);
    to_.initializer(to_.keep(node.name), value);
    TensorProto& tensor = to_.graph().initializers.back();
    tensor.dims = real_type(value).second;
    tensor.type = static_cast<std::int64_t>(element_type_of(node.type.dtype));
  }
}

/// An output that is an argument, a constant, or another output too, is a copy.
void GraphExporter::add_outputs(const NodeExporter& nodes) {
  to_.set_module("");
  for (const ir::Output& output : graph_.outputs) {
    const ValueProto described_output = to_.described(output.name, graph_[output.value].type);
    const Text value = nodes[output.value];
    if (value != described_output.name) to_.add_named("Identity", {value}, described_output.name);
    to_.graph().outputs.push_back(described_output);
  }
}

ModelProto GraphExporter::model() const {
  ModelProto model;
  model.ir_version = format_version(opset_);
  model.opsets.push_back({"", opset_});
  model.graph = to_.graph();
  return model;
}

}  // namespace lathe::onnx
