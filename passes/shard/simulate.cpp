#include "passes/shard/simulate.h"

#include "ir/ops/collectives.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/interpret/evaluate.h"
#include "ir/tensor/node_map.h"
#include "passes/shard/collective_values.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Runs the graph on every process of a mesh; values have their evaluation dtypes.
class Simulation {
 public:
  Simulation(const Sharded& sharded, const InterpretOptions& options)
      : sharded_(sharded), graph_(sharded.graph), options_(options) {}

  Tensors run(const Tensors& arguments) {
    const FloatEnvironment environment;
    give(arguments);
    std::vector<Output> wanted = graph_.outputs;
    for (const Update& update : graph_.updates) wanted.push_back({graph_[update.state].name, update.value});
    std::vector<ValueId> ids;
    for (const Output& output : wanted) ids.push_back(output.value);
    const NodeMap<std::int32_t> last = last_readers(graph_, ids);
    for (const ValueId id : all_values(graph_)) {
      if (last[id] < 0) continue;
      compute(id);
      for (const ValueId operand : graph_[id].operands)
        if (last[operand] == id.index) values_[operand].clear();
    }
    Tensors results;
    for (const Output& output : wanted) results.set(output.name, joined(output));
    return results;
  }

 private:
  std::size_t processes() const { return static_cast<std::size_t>(sharded_.mesh.size()); }

  /// Gives each process its shards, and derives the dims from those of the first process; they are the same on all.
  void give(const Tensors& arguments) {
    values_ = NodeMap<std::vector<HostTensor>>(graph_);
    std::map<std::string, ArgumentShape> shapes;
    for (const auto& [name, tensor] : arguments) {
      const auto placement = sharded_.arguments.find(name);
      const HostTensor first = placement == sharded_.arguments.end()
                                   ? tensor
                                   : part_of(tensor, placement->second, sharded_.mesh, 0, name, options_.dims);
      shapes.insert({name, {tensor.dtype(), first.shape()}});
    }
    bindings_ = bind_dims(graph_, shapes, options_.dims);
    for (const ValueId id : graph_.arguments()) {
      const Node& node = graph_[id];
      const HostTensor whole = arguments.at(node.name).cast(evaluation_dtype(node.type.dtype));
      for (std::size_t p = 0; p < processes(); ++p)
        values_[id].push_back(to_evaluation_dtype(part_of(whole, sharded_.arguments.at(node.name), sharded_.mesh,
                                                          static_cast<std::int64_t>(p), node.name, bindings_),
                                                  node.type.dtype, options_.round));
    }
  }

  void compute(ValueId id) {
    const Node& node = graph_[id];
    if (node.op->as<Argument>()) return;
    std::vector<HostTensor> results;
    if (is_collective(*node.op)) {
      results = exchanged(node);
    } else {
      for (std::size_t p = 0; p < processes(); ++p)
        results.push_back(evaluate_node(graph_, node, operands_of(node, p), bindings_, options_));
    }
    for (HostTensor& value : results)
      values_[id].push_back(to_evaluation_dtype(std::move(value), node.type.dtype, options_.round));
  }

  std::vector<const HostTensor*> operands_of(const Node& node, std::size_t process) const {
    std::vector<const HostTensor*> operands;
    for (const ValueId operand : node.operands) operands.push_back(&values_[operand][process]);
    return operands;
  }

  /// Returns the value of a collective on every process.
  std::vector<HostTensor> exchanged(const Node& node) const {
    const int axis = sharded_.mesh.find(axis_of(node).name);
    std::vector<HostTensor> results(processes());
    for (std::size_t p = 0; p < processes(); ++p) {
      const auto process = static_cast<std::int64_t>(p);
      const std::int64_t index = sharded_.mesh.index(process, axis);
      std::vector<const HostTensor*> group;
      for (const std::int64_t member : sharded_.mesh.group(process, axis))
        for (const ValueId operand : node.operands) group.push_back(&values_[operand][member]);
      results[p] = collective_value(node, group, index, bindings_);
    }
    return results;
  }

  HostTensor joined(const Output& output) const {
    const DType dtype = graph_[output.value].type.dtype;
    std::vector<HostTensor> parts;
    for (const HostTensor& value : values_[output.value]) parts.push_back(to_result(value, dtype, options_.round));
    const Placement& lies = sharded_.results.at(output.name);
    require_same_copies(lies, sharded_.mesh, output.name,
                        [&](std::int64_t a, std::int64_t b) { return parts[a].same_bits(parts[b]); });
    return join_parts(parts, lies, sharded_.mesh, output.name, bindings_);
  }

  const Sharded& sharded_;
  const Graph& graph_;
  const InterpretOptions& options_;
  DimBindings bindings_;
  NodeMap<std::vector<HostTensor>> values_;  ///< by node, then by process
};

}  // namespace

Tensors simulate(const Sharded& sharded, const Tensors& arguments, const InterpretOptions& options) {
  return Simulation(sharded, options).run(arguments);
}

}  // namespace lathe::shard
