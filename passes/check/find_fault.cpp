#include "passes/check/find_fault.h"

#include <algorithm>
#include <map>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/builder.h"
#include "passes/check/results.h"
#include "passes/transforms/dce.h"

namespace lathe::ir {

namespace {

/// Returns the value of the result with this name.
ValueId result_value(const Graph& graph, const std::string& name) {
  for (const Output& result : named_results(graph))
    if (result.name == name) return result.value;
  throw InternalError("no result is called " + name);
}

/// Returns, by node, whether it is in `values` or a value in it depends on the node.
NodeMap<bool> ancestors(const Graph& graph, const std::vector<ValueId>& values) {
  NodeMap<bool> reached(graph);
  for (const ValueId id : values) reached[id] = true;
  mark_ancestors(graph, reached);
  return reached;
}

/// Returns a graph of one op, with inputs "0", "1", ... of its operands' types and the output "result".
Graph one_op(const Graph& graph, const Node& node) {
  GraphBuilder builder(node.op->name.value);
  std::vector<Value> operands;
  for (const ValueId id : node.operands) {
    const TensorType& type = graph[id].type;
    operands.push_back(builder.argument(ops::input, std::to_string(operands.size()), type.dtype, type.shape));
  }
  builder.output("result", builder.copy(node, operands));
  return builder.finish();
}

class FaultSearch {
 public:
  FaultSearch(const Graph& graph, const Tensors& arguments, const RunGraph& run, const ExpectOptions& options)
      : graph_(graph), arguments_(arguments), run_(run), options_(options) {
    std::map<std::string, ArgumentShape> shapes;
    for (const auto& [name, tensor] : arguments) shapes[name] = {tensor.dtype(), tensor.shape()};
    options_.interpret.dims = bind_dims(graph, shapes, options.interpret.dims);
  }

  /// Returns the value at fault for the results in `wrong`, by name.
  Fault find(const std::vector<std::string>& wrong) {
    if (auto fault = wrong_op(wrong)) return *fault;
    for (const std::string& name : wrong)
      if (auto fault = wrong_alone(result_value(graph_, name))) return *fault;
    return wrong_together(wrong.front());
  }

 private:
  std::vector<ValueId> computed_for(const std::vector<std::string>& results) const {
    std::vector<ValueId> values;
    for (const std::string& name : results) values.push_back(result_value(graph_, name));
    const NodeMap<bool> reached = ancestors(graph_, values);
    values.clear();
    for (const ValueId id : all_values(graph_))
      if (reached[id] && !graph_[id].op->as<Argument>()) values.push_back(id);
    return values;
  }

  /// Computes every value that the results need as an output of one graph. Returns the first one that differs both
  /// from the interpreter's value and from the result of its op on its computed operands.
  std::optional<Fault> wrong_op(const std::vector<std::string>& results) {
    const std::vector<ValueId> values = computed_for(results);
    const Tensors computed = run_(only_values(graph_, values));
    ExpectedValues expected(graph_, arguments_, values, options_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const HostTensor& found = computed.at(value_name(values[i]));
      if (expected.compare(i, found).near()) continue;
      const Node& node = graph_[values[i]];
      Tensors operands;
      for (const ValueId id : node.operands)
        operands.emplace(std::to_string(operands.size()), graph_[id].op->as<Argument>()
                                                              ? arguments_.at(graph_[id].name)
                                                              : computed.at(value_name(id)));
      const Graph op = one_op(graph_, node);
      ExpectedValues by_operands(op, operands, {op.outputs.front().value}, options_);
      if (const Nearness nearness = by_operands.compare(0, found); !nearness.near())
        return Fault{Fault::Kind::op, values[i], nearness, describe(nearness.difference, found, by_operands[0])};
    }
    return std::nullopt;
  }

  /// Returns how near a value is if it is the only output; computed once.
  const Fault& alone(ValueId id) {
    if (const auto at = alone_.find(id); at != alone_.end()) return at->second;
    const HostTensor found = run_(only_values(graph_, std::span(&id, 1))).at(value_name(id));
    ExpectedValues expected(graph_, arguments_, {id}, options_);
    const Nearness nearness = expected.compare(0, found);
    return alone_[id] = {Fault::Kind::alone, id, nearness, describe(nearness.difference, found, expected[0])};
  }

  /// Searches from a value that is wrong alone to one whose operands are all right alone.
  std::optional<Fault> wrong_alone(ValueId id) {
    if (graph_[id].op->as<Argument>() || alone(id).nearness.near()) return std::nullopt;
    for (const ValueId operand : graph_[id].operands)
      if (auto fault = wrong_alone(operand)) return fault;
    return alone(id);
  }

  /// Returns the graph with some of its results.
  Graph with_results(const std::vector<std::string>& names) const {
    const auto left_out = [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) == names.end();
    };
    Graph some = graph_;
    std::erase_if(some.outputs, [&](const Output& output) { return left_out(output.name); });
    std::erase_if(some.updates, [&](const Update& update) { return left_out(graph_[update.state].name); });
    return dce(std::move(some));
  }

  /// Reduces the other results with which a result is wrong, as long as it remains wrong.
  Fault wrong_together(const std::string& name) {
    const ValueId id = result_value(graph_, name);
    ExpectedValues expected(graph_, arguments_, {id}, options_);
    std::vector<std::string> others;
    for (const Output& result : named_results(graph_))
      if (result.name != name) others.push_back(result.name);
    Fault fault{Fault::Kind::together, id};
    const auto still_wrong = [&](std::vector<std::string> with) {
      with.push_back(name);
      const HostTensor found = run_(with_results(with)).at(name);
      const Nearness nearness = expected.compare(0, found);
      if (nearness.near()) return false;
      fault.nearness = nearness;
      fault.worst = describe(nearness.difference, found, expected[0]);
      return true;
    };
    still_wrong(others);
    for (std::size_t length = (others.size() + 1) / 2; length > 0; length /= 2)
      for (std::size_t first = 0; first < others.size();) {
        std::vector<std::string> fewer = others;
        const auto from = fewer.begin() + static_cast<std::ptrdiff_t>(first);
        fewer.erase(from, from + static_cast<std::ptrdiff_t>(std::min(length, others.size() - first)));
        if (still_wrong(fewer))
          others = std::move(fewer);
        else
          first += length;
      }
    fault.with = others;
    return fault;
  }

  const Graph& graph_;
  const Tensors& arguments_;
  const RunGraph& run_;
  ExpectOptions options_;
  std::map<ValueId, Fault> alone_;
};

}  // namespace

std::vector<Fault> find_faults(const Graph& graph, const Tensors& arguments, std::vector<std::string> wrong,
                               const RunGraph& run, const ExpectOptions& options) {
  FaultSearch search(graph, arguments, run, options);
  std::vector<Fault> faults;
  while (!wrong.empty()) {
    Fault fault = search.find(wrong);
    const auto inherits = [&](const std::string& name) -> bool {
      return ancestors(graph, {result_value(graph, name)})[fault.value];
    };
    const auto rest = std::stable_partition(wrong.begin(), wrong.end(), inherits);
    fault.inherits.assign(wrong.begin(), rest);
    wrong.erase(wrong.begin(), rest);
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace lathe::ir
