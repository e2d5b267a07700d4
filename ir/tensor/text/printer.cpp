#include "ir/tensor/text/printer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/tensor/op/op.h"
#include "ir/tensor/text/position_labels.h"

namespace lathe::ir {

namespace {

/// Pads `line` to the first of the columns first, first + 16, ... that leaves two spaces. Fixed stops make a line
/// independent of its neighbours.
void pad_to_stop(std::string& line, std::size_t first) {
  constexpr std::size_t gap = 16;
  std::size_t stop = first;
  while (stop < line.size() + 2) stop += gap;
  line.append(stop - line.size(), ' ');
}

/// The bodies of a graph's loops and their labels: the names of their graphs, numbered if two have one name.
class BodyLabels {
 public:
  /// Returns the label of a body that was added, and otherwise the name of its graph.
  std::string operator()(const Body& body) const {
    for (const auto& [known, label] : labels_)
      if (known.looks_like(body)) return label;
    return body.graph().name;
  }
  /// Returns whether it is new.
  bool add(const Body& body) {
    for (const auto& [known, other] : labels_)
      if (known.looks_like(body)) return false;
    std::string label = body.graph().name;
    for (int number = 2; std::ranges::find(taken_, label) != taken_.end(); ++number)
      label = fmt::format("{}.{}", body.graph().name, number);
    taken_.push_back(label);
    labels_.emplace_back(body, std::move(label));
    return true;
  }

 private:
  std::vector<std::pair<Body, std::string>> labels_;
  std::vector<std::string> taken_;
};

std::string attributes_text(const Node& node, const BodyLabels& bodies) {
  std::string text;
  for (const auto& [name, value] : node.attrs.entries()) {
    if (is_default(*node.op, name, value)) continue;
    const auto* body = std::get_if<Body>(&value);
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name,
                        body ? sigiled('@', bodies(*body)) : print_attribute(value));
  }
  return text.empty() ? text : " {" + text + "}";
}

/// `label` returns the label of a value.
template <class Label>
std::string node_text(const Graph& graph, ValueId id, const Label& label, const PrintOptions& options,
                      const BodyLabels& bodies = {}) {
  const Node& node = graph[id];
  std::string line;
  if (node.op->as<Argument>()) {
    line = fmt::format("{} {}: {}", node.op->name.value, label(id), print_type(node.type, options.strides));
  } else {
    line = fmt::format("{} = {}", label(id), node.op->name.value);
    for (std::size_t i = 0; i < node.operands.size(); ++i) line += (i == 0 ? " " : ", ") + label(node.operands[i]);
    line += attributes_text(node, bodies);
    pad_to_stop(line, 42);
    line += ": " + print_type(node.type, options.strides);
    if (!node.name.empty()) line += "  name(" + quoted(node.name) + ")";
  }
  if (options.locations) {
    pad_to_stop(line, 90);
    line += print_location(node.loc);
  }
  return line;
}

/// Returns the header: on one line if it is short and has no locations, otherwise one argument per line.
template <class Label>
std::string signature(const std::string& head, const Graph& graph, const Label& label, const PrintOptions& options) {
  constexpr std::size_t width = 118;
  std::string one_line = head + "(", lines = head + "(";
  bool first = true;
  for (const ValueId id : graph.arguments()) {
    const std::string argument = node_text(graph, id, label, options);
    one_line += (first ? "" : ", ") + argument;
    lines += (first ? "\n  " : ",\n  ") + argument;
    first = false;
  }
  one_line += ") {\n";
  if (first || (!options.locations && one_line.size() <= width + 1)) return one_line;
  return lines + "\n) {\n";
}

}  // namespace

std::string print_check(const DimCheck& check, const PrintOptions& options) {
  const auto word = [](const std::string& text) { return is_dim_name(text) ? text : quoted(text); };
  std::string line = fmt::format("check {} {} {}", check.left.to_string(),
                                 check.relation == DimCheck::Relation::equal ? "==" : "<=", check.right.to_string());
  pad_to_stop(line, 42);
  line += fmt::format(": {} [{}] {}", word(check.op), word(check.label), quoted(check.message));
  if (options.locations) line += "  " + print_location(check.loc);
  return line;
}

NodeMap<std::string> value_labels(const Graph& graph) {
  NodeMap<std::string> labels(graph);
  int computed = 0;
  for (const ValueId id : all_values(graph))
    labels[id] = graph[id].op->as<Argument>() ? sigiled('%', graph[id].name) : fmt::format("%{}", ++computed);
  return labels;
}

std::string value_label(const Graph& graph, ValueId id) {
  if (graph[id].op->as<Argument>()) return sigiled('%', graph[id].name);
  int computed = 1;
  for (std::int32_t i = 0; i < id.index; ++i) computed += graph[ValueId{i}].op->as<Argument>() ? 0 : 1;
  return fmt::format("%{}", computed);
}

NodeMap<std::string> position_labels(const Graph& graph) {
  NodeMap<std::string> labels(graph);
  for (const ValueId id : all_values(graph))
    labels[id] = graph[id].op->as<Argument>() ? sigiled('%', graph[id].name) : fmt::format("%{}", id.index);
  return labels;
}

std::string print(const Graph& graph, const PrintOptions& options) {
  return print(graph, value_labels(graph), options);
}

namespace {

std::string print_block(const std::string& head, const Graph& graph, const NodeMap<std::string>& labels,
                        const PrintOptions& options);

std::string indented(const std::string& block) {
  std::string text;
  for (std::size_t begin = 0; begin < block.size();) {
    const std::size_t end = block.find('\n', begin) + 1;
    text += "  " + block.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

/// Returns the blocks of the node's bodies that no earlier node has.
std::string new_bodies(const Node& node, BodyLabels& bodies, const PrintOptions& options) {
  std::string text;
  for (const auto& [name, value] : node.attrs.entries())
    if (const auto* body = std::get_if<Body>(&value); body && bodies.add(*body))
      text += indented(
          print_block("body " + sigiled('@', bodies(*body)), body->graph(), value_labels(body->graph()), options));
  return text;
}

std::string print_block(const std::string& head, const Graph& graph, const NodeMap<std::string>& labels,
                        const PrintOptions& options) {
  const auto label = [&](ValueId v) -> const std::string& { return labels[v]; };
  std::string text = signature(head, graph, label, options);
  BodyLabels bodies;
  for (const ValueId id : all_values(graph)) {
    if (graph[id].op->as<Argument>()) continue;
    text += new_bodies(graph[id], bodies, options);
    text += "  " + node_text(graph, id, label, options, bodies) + "\n";
  }
  for (const Output& output : graph.outputs)
    text += fmt::format("  output {} {}\n", quoted(output.name), label(output.value));
  for (const Update& update : graph.updates)
    text += fmt::format("  update {} <- {}\n", label(update.state), label(update.value));
  if (options.checks)
    for (const DimCheck& check : graph.checks) text += "  " + print_check(check, options) + "\n";
  return text + "}\n";
}

}  // namespace

std::string print(const Graph& graph, const NodeMap<std::string>& labels, const PrintOptions& options) {
  return print_block("graph " + sigiled('@', graph.name), graph, labels, options);
}

std::string print_whole(const Attribute& attribute) {
  const auto* body = std::get_if<Body>(&attribute);
  return body ? print(body->graph(), {.locations = false}) : print_attribute(attribute);
}

std::string print_node(const Graph& graph, ValueId id, const PrintOptions& options) {
  return node_text(graph, id, [&](ValueId v) { return value_label(graph, v); }, options);
}

std::string print_node(const Graph& graph, ValueId id, const NodeMap<std::string>& labels,
                       const PrintOptions& options) {
  return node_text(graph, id, [&](ValueId v) { return labels[v]; }, options);
}

}  // namespace lathe::ir
