#include "models/import/onnx/model_importer.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "models/import/fixed_input.h"
#include "models/import/stored/kept_tensor.h"

namespace lathe::onnx {

using importing::Results;
using importing::Value;

namespace {

/// Whether a float tensor is trained: not a single number in the code of a model, whose name has no module path:
/// "scalar_tensor_default", "onnx::Div_12", "/layers.0/Constant_output_0".
bool is_parameter(const HostTensor& tensor, Text name) {
  if (!is_float(tensor.dtype()) || tensor.numel() == 0) return false;
  const bool has_module = name.find('.') != Text::npos && !name.starts_with("/") && !name.starts_with("onnx::");
  return tensor.numel() > 1 || has_module;
}

/// Returns the module of a node with a path: "layers.0.attn" for "/layers.0/attn/MatMul".
std::string module_of(Text name) {
  if (!name.starts_with("/")) return "";
  const std::size_t last = name.rfind('/');
  std::string module(name.substr(1, last == 0 ? 0 : last - 1));
  for (char& c : module)
    if (c == '/') c = '.';
  return module;
}

}  // namespace

const Value* NodeScope::find(Text name) const {
  if (const auto found = values.find(name); found != values.end()) return &found->second;
  return around ? around->find(name) : nullptr;
}

ModelImporter::ModelImporter(const std::filesystem::path& path, const ModelProto& model, TensorData& data,
                             const importing::OpTable& ops, const importing::ImportOptions& options,
                             importing::InputDims& input_dims)
    : file_(path.filename().string()),
      model_(model),
      data_(data),
      ops_(ops),
      options_(options),
      functions_(model),
      dims_(*model.graph),
      input_dims_(input_dims),
      caches_(options, path.filename().string()),
      imported_{Graph(model.graph->name.empty() ? path.stem().string() : std::string(model.graph->name)), {}, {}} {}

importing::ImportedGraph ModelImporter::import() {
  const Opsets opsets = opsets_of(model_.opsets);
  NodeScope scope{.opsets = &opsets, .graph = &imported_.graph};
  add_initializers(scope, *model_.graph);
  add_inputs(scope);
  add_nodes(scope, model_.graph->nodes);
  add_outputs(scope);
  return std::move(imported_);
}

void ModelImporter::add_outputs(const NodeScope& scope) {
  for (const ValueProto& output : model_.graph->outputs) {
    const Value* const value = scope.find(output.name);
    if (!value)
      throw UserError(fmt::format("{}: no node computes the output '{}'", file_, output.name), "import_file");
    const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + std::string(output.name), 0));
    const Tensor tensor = value->in(imported_.graph);
    if (caches_.is_output(output.name, tensor)) continue;
    if (options_.declares_outputs) imported_.graph.output(output.name, tensor);
    imported_.outputs.emplace(output.name, tensor);
  }
  caches_.require_outputs();
}

void ModelImporter::define(NodeScope& scope, Text name, Value value) const {
  if (!scope.values.emplace(name, std::move(value)).second)
    throw UserError(fmt::format("{}: the value '{}' is defined twice", file_, name), "import_file");
}

void ModelImporter::add_inputs(NodeScope& scope) {
  for (const ValueProto& input : model_.graph->inputs) {
    // Before version 4 of the format, initializers were inputs too.
    if (scope.values.contains(input.name)) continue;
    const std::string owner = fmt::format("{}: the input '{}'", file_, input.name);
    if (!input.other_kind.empty())
      throw UserError(fmt::format("{} is a {}", owner, input.other_kind), "import_dtype", "inputs must be tensors");
    const Shape shape = shape_of(input);
    const DType dtype = dtype_of(input.type, owner);
    if (options_.inputs.contains(input.name)) {
      const std::string name(input.name);
      define(scope, input.name, importing::fixed_input(options_.inputs.at(name), name, file_, dtype, shape));
      continue;
    }
    const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + std::string(input.name), 0));
    if (caches_.contains(input.name))
      define(scope, input.name, caches_.add(imported_.graph, std::string(input.name), dtype, shape));
    else if (options_.states.contains(std::string(input.name)))
      define(scope, input.name, imported_.graph.state(input.name, dtype, shape));
    else
      define(scope, input.name, imported_.graph.input(input.name, dtype, shape));
  }
  const auto require_input = [&](const std::string& name) {
    if (std::ranges::none_of(model_.graph->inputs, [&](const ValueProto& input) { return input.name == name; }))
      throw UserError(fmt::format("{} has no input '{}'", file_, name), "argument_unknown");
  };
  for (const auto& [name, value] : options_.inputs) require_input(name);
  for (const auto& [name, shape] : options_.shapes) require_input(name);
  for (const std::string& name : options_.states) require_input(name);
  input_dims_.check_sizes(file_);
}

Shape ModelImporter::shape_of(const ValueProto& input) {
  const std::string owner = fmt::format("{}: the input '{}'", file_, input.name);
  if (!input.shape)
    throw UserError(fmt::format("{} has no shape", owner), "import_size",
                    "export the model with shapes; sizes may be names");
  const auto given = options_.shapes.find(std::string(input.name));
  const std::vector<DimProto>& written = *input.shape;
  if (given == options_.shapes.end()) {
    std::vector<Dim> sizes;
    for (std::size_t i = 0; i < written.size(); ++i) sizes.push_back(input_dims_.apply(dims_.dim(input, i)));
    return Shape(std::move(sizes));
  }
  const Shape& shape = given->second;
  bool fits = shape.rank() == static_cast<int>(written.size());
  for (std::size_t i = 0; fits && i < written.size(); ++i)
    fits = !written[i].value || shape[static_cast<int>(i)] == Dim(*written[i].value);
  if (!fits) throw UserError(fmt::format("{} has not the shape {}", owner, shape.to_string()), "argument_shape");
  return shape;
}

Value ModelImporter::initializer(const TensorProto& proto) {
  HostTensor tensor = data_.read(proto);
  const bool is_trained = is_parameter(tensor, proto.name);
  if (!is_trained && tensor.numel() <= importing::most_elements) return Value::constant(std::move(tensor));
  return stored(std::string(proto.name), std::move(tensor), is_trained);
}

Value ModelImporter::stored(const std::string& name, HostTensor tensor, bool is_trained) {
  return importing::kept_tensor(imported_, Location(file_ + ":" + name, 0), name, std::move(tensor),
                                is_trained ? importing::Kept::parameter : importing::Kept::state);
}

void ModelImporter::add_initializers(NodeScope& scope, const GraphProto& graph) {
  for (const TensorProto& tensor : graph.initializers) define(scope, tensor.name, initializer(tensor));
}

void ModelImporter::add_nodes(NodeScope& scope, const std::vector<NodeProto>& nodes) {
  for (const NodeProto& node : nodes) add_node(scope, node);
}

void ModelImporter::add_node(NodeScope& scope, const NodeProto& node) {
  const Location here = location(scope, node);
  constexpr std::int64_t most_nodes = std::int64_t{1} << 20;
  if (++nodes_ > most_nodes)
    fail(scope, node, fmt::format("the model has more than {} nodes, with those of calls", most_nodes),
         "import_file");
  try {
    if (const FunctionProto* function = functions_.find(node)) return add_call(scope, node, *function);
    add_op(scope, node);
  } catch (const UserError& error) {
    // Some functions of the DSL raise errors at their own line.
    const std::string_view text = error.what();
    if (text.find(here.place()) != std::string_view::npos || text.starts_with(file_)) throw;
    throw error.with_note(fmt::format("at {}", here.place()));
  }
}

std::vector<Value> ModelImporter::operands(const NodeScope& scope, const NodeProto& node) const {
  std::vector<Value> all;
  for (const Text name : node.inputs) {
    if (name.empty()) {
      all.emplace_back();
      continue;
    }
    const Value* const value = scope.find(name);
    if (!value)
      fail(scope, node, fmt::format("the operand '{}' is not defined before the node", name), "import_file",
           "nodes must be in the order of their computation");
    all.push_back(*value);
  }
  while (!all.empty() && all.back().is_absent()) all.pop_back();
  return all;
}

void ModelImporter::add_op(NodeScope& scope, const NodeProto& node) {
  const std::int64_t version = scope.opsets->at(domain_of(node));
  const importing::OpRecord* const record = ops_.find(domain_of(node), node.op, version);
  LATHE_ASSERT(record);  // check_ops() has found it
  importing::SourceNode source{std::string(node.op), version, location(scope, node), attributes(scope, node),
                               bodies(scope, node)};
  for (const Text output : node.outputs) source.results.push_back(!output.empty());
  source.past_rows = &caches_;
  const importing::OpCall call(source, operands(scope, node), *scope.graph);
  Results results = importing::import_op(*record, call);
  caches_.rewrite(results);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size() || results[i].is_absent())
      call.fail(fmt::format("result {}, '{}', is not supported", i, node.outputs[i]));
    // A large constant in a node is a state, as that of an initializer.
    const HostTensor* const constant = results[i].constant();
    if (constant && constant->numel() > importing::most_elements)
      results[i] = stored(scope.path + std::string(node.outputs[i]), *constant, false);
    define(scope, node.outputs[i], std::move(results[i]));
  }
}

/// A call of a function: its nodes are added in a scope of their own.
void ModelImporter::add_call(NodeScope& scope, const NodeProto& node, const FunctionProto& function) {
  const Opsets opsets = opsets_of(function.opsets);
  NodeScope inner{
      .opsets = &opsets, .graph = scope.graph, .path = scope.path + node_name(node) + "/", .depth = scope.depth + 1};
  if (inner.depth > most_nested) fail(scope, node, "too many nested branches and calls", "import_file");
  for (const AttributeProto& fallback : function.defaults)
    inner.attributes.insert_or_assign(std::string(fallback.name), attribute(scope, node, fallback));
  for (auto& [name, value] : attributes(scope, node)) inner.attributes.insert_or_assign(name, std::move(value));
  const std::vector<Value> given = operands(scope, node);
  if (given.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    fail(scope, node, "the call has more operands or results than the function", "import_file");
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    define(inner, function.inputs[i], i < given.size() ? given[i] : Value());
  add_nodes(inner, function.nodes);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Value* const value = inner.find(function.outputs[i]);
    if (!value)
      fail(scope, node, fmt::format("the function does not compute '{}'", function.outputs[i]), "import_file");
    if (!node.outputs[i].empty()) define(scope, node.outputs[i], *value);
  }
}

Location ModelImporter::location(const NodeScope& scope, const NodeProto& node) const {
  const std::string name = scope.path + node_name(node);
  return Location(fmt::format("{}:{}", file_, name), 0, module_of(name));
}

void ModelImporter::fail(const NodeScope& scope, const NodeProto& node, std::string_view message,
                         std::string_view label, std::string_view hint) const {
  throw UserError(location(scope, node), node.op, message, label, hint);
}

}  // namespace lathe::onnx
