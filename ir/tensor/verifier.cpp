#include "ir/tensor/verifier.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "ir/tensor/loop_views.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/node_table.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

using Defect = std::optional<std::string>;

bool exists(const Graph& graph, ValueId id) { return id.valid() && id.index < graph.size(); }

Defect operand_defect(const Node& node, ValueId id) {
  for (const ValueId operand : node.operands)
    if (!operand.valid() || operand.index >= id.index)
      return fmt::format("operand {} does not stand before it", operand.index);
  const Arity arity = node.op->arity;
  const int n = static_cast<int>(node.operands.size());
  if (n < arity.min || (arity.max >= 0 && n > arity.max)) return fmt::format("{} operands are not its arity", n);
  return std::nullopt;
}

/// Checks that attributes are in schema order, and that only those without a default are missing.
Defect attribute_defect(const Node& node) {
  const auto& entries = node.attrs.entries();
  auto entry = entries.begin();
  for (const AttrSpec& spec : node.op->attrs.value) {
    if (entry != entries.end() && entry->first == spec.name) {
      if (static_cast<AttrKind>(entry->second.index()) != spec.kind)
        return fmt::format("the attribute {} has the wrong kind", spec.name);
      ++entry;
    } else if (spec.required || !std::holds_alternative<std::monostate>(spec.fallback)) {
      return fmt::format("the attribute {} is missing or out of order", spec.name);
    }
  }
  if (entry != entries.end()) return fmt::format("the attribute {} is not in the schema", entry->first);
  return std::nullopt;
}

bool same_check(const DimCheck& a, const DimCheck& b) {
  return a.left == b.left && a.right == b.right && a.relation == b.relation && a.op == b.op && a.label == b.label;
}

Defect lost_check(const Graph& graph, const std::vector<DimCheck>& checks) {
  for (const DimCheck& check : checks)
    if (std::none_of(graph.checks.begin(), graph.checks.end(),
                     [&](const DimCheck& c) { return same_check(c, check); }))
      return fmt::format("the run-time check {} {} {} [{}] is lost", check.left.to_string(),
                         check.relation == DimCheck::Relation::equal ? "==" : "<=", check.right.to_string(),
                         check.label);
  return std::nullopt;
}

InferredTypes::Inferred& infer(const Graph& graph, const Node& node, InferredTypes& types) {
  if (auto* known = types.find(graph, *node.op, node.attrs, node.operands)) return *known;
  InferredTypes::Inferred inferred{
      .op = node.op, .given = node.attrs, .operands = {}, .attrs = {}, .type = {}, .checks = {}};
  inferred.type =
      node.op->infer.value(InferContext(*node.op, graph, node.operands, node.attrs, node.loc, inferred.checks));
  return types.keep(graph, node.operands, std::move(inferred));
}

Defect type_defect(const Graph& graph, const Node& node, InferredTypes& types, int number) {
  InferredTypes::Inferred* inferred = nullptr;
  try {
    inferred = &infer(graph, node, types);
  } catch (const UserError& e) {
    return fmt::format("its rule refuses it: {}", e.what());
  }
  if (inferred->type != node.type)
    return fmt::format("its type is {}, but the rule gives {}", print_type(node.type, true),
                       print_type(inferred->type, true));
  if (inferred->checked_in == number) return std::nullopt;
  inferred->checked_in = number;
  return lost_check(graph, inferred->checks);
}

Defect argument_defect(const Node& node) {
  if (!node.operands.empty()) return "an argument has no operands";
  if (!node.attrs.entries().empty()) return "an argument has no attributes";
  if (node.name.empty()) return "an argument needs a name";
  if (!node.type.is_row_major()) return "an argument is contiguous";
  return std::nullopt;
}

/// Returns the first argument whose name is a duplicate, or an invalid id.
ValueId argument_named_twice(const Graph& graph, const std::vector<ValueId>& arguments) {
  NodeTable known;
  known.reserve(arguments.size());
  for (const ValueId id : arguments) {
    const std::string_view name = graph[id].name;
    const std::size_t hash = std::hash<std::string_view>{}(name);
    if (known.find(hash, {}, [&](ValueId other) { return graph[other].name == name; }).valid()) return id;
    known.add(hash, {}, id);
  }
  return {};
}

Defect node_defect(const Graph& graph, ValueId id, InferredTypes& types, int number) {
  const Node& node = graph[id];
  if (node.op->as<Argument>()) return argument_defect(node);
  if (auto defect = operand_defect(node, id)) return defect;
  if (auto defect = attribute_defect(node)) return defect;
  return type_defect(graph, node, types, number);
}

Defect result_defect(const Graph& graph) {
  std::set<std::string_view> names;
  for (const Output& output : graph.outputs) {
    if (!exists(graph, output.value)) return fmt::format("output {} has no value", quoted(output.name));
    if (!names.insert(output.name).second) return fmt::format("two outputs are named {}", quoted(output.name));
  }
  NodeMap<bool> updated(graph);
  for (const Update& update : graph.updates) {
    if (!exists(graph, update.state) || !exists(graph, update.value)) return "an update has no state or no value";
    const Node& state = graph[update.state];
    const TensorType& type = graph[update.value].type;
    if (!state.op->as<Argument>() || state.op->name.value == "input")
      return fmt::format("an update of value {}, which is neither parameter nor state", update.state.index);
    if (state.type.dtype != type.dtype || state.type.shape != type.shape)
      return fmt::format("the update of {} changes {} to {}", state.name, print_type(state.type), print_type(type));
    if (updated[update.state]) return fmt::format("{} is updated twice", state.name);
    updated[update.state] = true;
  }
  return std::nullopt;
}

/// Checks the body of a loop, unless it is among `known`.
Defect body_defect(const Node& node, InferredTypes& types, std::vector<const Body*>& known) {
  if (!is_loop(node)) return std::nullopt;
  const Body& body = loop_body(node);
  if (std::ranges::any_of(known, [&](const Body* other) { return other->is_same(body); })) return std::nullopt;
  known.push_back(&body);
  return find_defect(body.graph(), types);
}

/// Describes a node of a possibly invalid graph: ids are positions.
std::string describe(const Node& node, ValueId id) {
  std::string text = fmt::format("value {}: {}", id.index, node.op->name.value);
  for (const ValueId operand : node.operands) text += fmt::format(" #{}", operand.index);
  if (!node.name.empty()) text += fmt::format(" ({})", node.name);
  return text + " at " + node.loc.to_string();
}

}  // namespace

std::optional<std::string> find_defect(const Graph& graph) {
  InferredTypes types;
  return find_defect(graph, types);
}

std::optional<std::string> find_defect(const Graph& graph, InferredTypes& types) {
  const int number = types.next_graph();
  const auto message = [&](ValueId id, const std::string& defect) {
    return fmt::format("graph @{}, {}: {}", graph.name, describe(graph[id], id), defect);
  };
  std::vector<ValueId> arguments;
  std::vector<const Body*> bodies;
  for (const ValueId id : all_values(graph)) {
    if (!graph[id].op) return fmt::format("graph @{}: value {} has no op", graph.name, id.index);
    if (graph[id].op->as<Argument>()) arguments.push_back(id);
    if (const Defect defect = node_defect(graph, id, types, number)) return message(id, *defect);
    if (const Defect defect = body_defect(graph[id], types, bodies)) return message(id, *defect);
  }
  if (const ValueId id = argument_named_twice(graph, arguments); id.valid())
    return message(id, "two arguments have this name");
  if (const Defect defect = result_defect(graph)) return fmt::format("graph @{}: {}", graph.name, *defect);
  return std::nullopt;
}

void verify(const Graph& graph) {
  if (const auto defect = find_defect(graph)) throw InternalError(*defect);
}

}  // namespace lathe::ir
