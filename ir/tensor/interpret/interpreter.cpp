#include "ir/tensor/interpret/interpreter.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/interpret/evaluate.h"

namespace lathe::ir {

namespace {

/// The values of a graph's nodes; empty if not needed (anymore).
using Slots = NodeMap<std::optional<HostTensor>>;

}  // namespace

NodeMap<std::int32_t> last_readers(const Graph& graph, std::span<const ValueId> wanted) {
  NodeMap<std::int32_t> last(graph, -1);
  for (const ValueId id : wanted) last[id] = graph.size();
  for (const ValueId id : reversed_values(graph)) {
    if (last[id] < 0) continue;
    for (const ValueId operand : graph[id].operands) last[operand] = std::max(last[operand], id.index);
  }
  return last;
}

HostTensor to_evaluation_dtype(HostTensor value, DType dtype, bool round) {
  const DType held = evaluation_dtype(dtype);
  if (dtype == held || (!round && dtype != i32)) return value;
  return value.cast(dtype).cast(held);
}

namespace {

/// Returns the node with its Dim attributes evaluated to numbers.
Node with_bound_attributes(const Node& node, const DimBindings& bindings) {
  Node bound = node;
  for (const auto& [name, value] : node.attrs.entries())
    if (const Dim* dim = std::get_if<Dim>(&value)) bound.attrs.set(name, Dim(dim->evaluate(bindings)));
  return bound;
}

/// Runs a graph with bound dims, and the graphs that composite ops expand into.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const DimBindings& bindings, const InterpretOptions& options)
      : graph_(graph), bindings_(bindings), options_(options) {}

  /// Returns the wanted values in their evaluation dtypes. `arguments` are the values of the argument nodes, in
  /// order.
  std::vector<HostTensor> run(std::span<const HostTensor* const> arguments, std::span<const ValueId> wanted) {
    Slots values(graph_);
    const NodeMap<std::int32_t> last = last_readers(graph_, wanted);
    std::size_t next_argument = 0;
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const HostTensor* argument = node.op->as<Argument>() ? arguments[next_argument++] : nullptr;
      if (last[id] < 0) continue;
      std::vector<const HostTensor*> operands;
      for (const ValueId operand : node.operands) operands.push_back(&*values[operand]);
      HostTensor value = argument ? argument->cast(evaluation_dtype(node.type.dtype)) : evaluate(node, operands);
      if (options_.computed && !argument && !node.op->as<Composite>()) options_.computed(node, operands, value);
      values[id] = to_evaluation_dtype(std::move(value), node.type.dtype, options_.round);
      for (const ValueId operand : node.operands)
        if (last[operand] == id.index) values[operand].reset();
    }
    std::vector<HostTensor> results;
    for (const ValueId id : wanted) results.push_back(*values[id]);
    return results;
  }

  HostTensor evaluate(const Node& node, OperandTensors operands) const {
    const Sizes sizes = node.type.shape.evaluate(bindings_);
    if (const auto* meaning = node.op->as<Elementwise>())
      return evaluate_elementwise(node, *meaning, operands, sizes);
    if (const auto* meaning = node.op->as<View>())
      return evaluate_view(graph_, node, *meaning, *operands[0], sizes, bindings_);
    if (const auto* meaning = node.op->as<Reduce>()) return evaluate_reduce(node, *meaning, *operands[0], sizes);
    if (const auto* meaning = node.op->as<Contraction>())
      return evaluate_contraction(node, *meaning, *operands[0], *operands[1], sizes);
    if (const auto* meaning = node.op->as<Custom>())
      return meaning->reference(with_bound_attributes(node, bindings_), operands, sizes);
    if (node.op->as<Loop>()) return evaluate_loop(node, operands, bindings_, options_);
    const auto* meaning = node.op->as<Composite>();
    LATHE_ASSERT(meaning);
    return expand(node, *meaning, operands);
  }

 private:
  /// Runs a graph of the composite alone, with its operands as inputs and the same dims.
  HostTensor expand(const Node& node, const Composite& meaning, OperandTensors operands) const {
    GraphBuilder builder(node.op->name.value);
    const GraphBuilder::At at(builder, node.loc);
    const Op* input = find_op("input");
    LATHE_ASSERT(input);
    std::vector<Value> inputs;
    for (const ValueId id : node.operands) {
      const TensorType& type = graph_[id].type;
      inputs.push_back(builder.argument(*input, fmt::format("operand{}", inputs.size()), type.dtype, type.shape));
    }
    const ValueId result = meaning.expand(builder, node, inputs).id();
    check_dims(builder.graph(), bindings_);
    return Interpreter(builder.graph(), bindings_, options_).run(operands, std::span(&result, 1)).front();
  }

  const Graph& graph_;
  const DimBindings& bindings_;
  const InterpretOptions& options_;
};

}  // namespace

std::vector<HostTensor> evaluate_graph(const Graph& graph, OperandTensors arguments, std::span<const ValueId> wanted,
                                       const DimBindings& bindings, const InterpretOptions& options) {
  return Interpreter(graph, bindings, options).run(arguments, wanted);
}

HostTensor to_result(HostTensor value, DType dtype, bool round) {
  return round || dtype == i32 ? value.cast(dtype) : std::move(value);
}

HostTensor evaluate_node(const Graph& graph, const Node& node, OperandTensors operands, const DimBindings& bindings,
                         const InterpretOptions& options) {
  return Interpreter(graph, bindings, options).evaluate(node, operands);
}

std::vector<HostTensor> interpret_values(const Graph& graph, const Tensors& arguments,
                                         std::span<const ValueId> values, const InterpretOptions& options) {
  const FloatEnvironment environment;
  std::map<std::string, ArgumentShape> shapes;
  for (const auto& [name, tensor] : arguments) shapes.insert({name, {tensor.dtype(), tensor.shape()}});
  const DimBindings bindings = bind_dims(graph, shapes, options.dims);
  std::vector<const HostTensor*> given;
  for (const ValueId id : graph.arguments()) given.push_back(&arguments.at(graph[id].name));
  std::vector<HostTensor> results = Interpreter(graph, bindings, options).run(given, values);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = to_result(std::move(results[i]), graph[values[i]].type.dtype, options.round);
  return results;
}

namespace {

/// Returns the values by name; a later value replaces an earlier one of the same name.
Tensors named(const Graph& graph, const Tensors& arguments, const std::vector<Output>& wanted,
              const InterpretOptions& options) {
  std::vector<ValueId> ids;
  for (const Output& output : wanted) ids.push_back(output.value);
  std::vector<HostTensor> values = interpret_values(graph, arguments, ids, options);
  Tensors results;
  for (std::size_t i = 0; i < wanted.size(); ++i) results.set(wanted[i].name, std::move(values[i]));
  return results;
}

}  // namespace

Tensors interpret(const Graph& graph, const Tensors& arguments, const InterpretOptions& options) {
  std::vector<Output> wanted = graph.outputs;
  for (const Update& update : graph.updates) {
    const std::string& name = graph[update.state].name;
    for (const Output& output : graph.outputs)
      if (output.name == name)
        throw UserError(fmt::format("@{} has both an output and an updated state named {}", graph.name, name),
                        "result_name", "rename the output");
    wanted.push_back({name, update.value});
  }
  return named(graph, arguments, wanted, options);
}

Tensors interpret_named(const Graph& graph, const Tensors& arguments, const InterpretOptions& options) {
  std::vector<Output> wanted;
  for (const ValueId id : all_values(graph))
    if (!graph[id].name.empty()) wanted.push_back({graph[id].name, id});
  wanted.insert(wanted.end(), graph.outputs.begin(), graph.outputs.end());
  for (const Update& update : graph.updates) wanted.push_back({graph[update.state].name, update.value});
  return named(graph, arguments, wanted, options);
}

}  // namespace lathe::ir
