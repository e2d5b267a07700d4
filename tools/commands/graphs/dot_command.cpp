#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/support/visible.h"
#include "ir/tensor/text/printer.h"
#include "tools/page/drawing.h"
#include "tools/page/node_kind.h"

namespace lathe::tools {

std::string_view node_kind(const ir::Op& op) {
  if (op.as<ir::Argument>()) return "argument";
  if (op.as<ir::View>() || op.name.value == "reshape" || op.name.value == "contiguous") return "view";
  if (op.as<ir::Elementwise>()) return "elementwise";
  if (op.as<ir::Contraction>()) return "product";
  if (op.as<ir::Reduce>()) return "reduce";
  if (op.as<ir::Custom>()) return "special";
  const std::string_view name = op.name.value;
  return name == "matmul" || name == "linear" || name == "einsum" || name == "attention" ? "product" : "composite";
}

namespace {

std::string_view fill(std::string_view kind) {
  static const std::map<std::string_view, std::string_view> colors{
      {"argument", "#dbeafe"}, {"view", "#f1f3f6"},      {"elementwise", "#e6f6ec"}, {"product", "#fde8d7"},
      {"reduce", "#fdf3c8"},   {"composite", "#ece6fd"}, {"special", "#fbe3ef"}};
  return colors.at(kind);
}

/// Quotes text for Graphviz, with \n for line ends. Other bytes need no escaping.
std::string dot_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + "\"";
}

constexpr std::size_t most_clusters = 32;  // maximum nesting depth; the innermost cluster gets the remaining path

/// A tree of nested clusters with a node for each component of the scope path.
struct Cluster {
  std::map<std::string, Cluster, std::less<>> inner;
  std::string lines;
};

void write(const Cluster& cluster, const std::string& title, int& number, std::string& text) {
  if (!title.empty()) text += fmt::format("subgraph cluster_{} {{ label={};\n", number++, dot_quoted(visible(title)));
  text += cluster.lines;
  for (const auto& [name, inner] : cluster.inner) write(inner, name, number, text);
  if (!title.empty()) text += "}\n";
}

std::string node_line(const ir::Graph& graph, ir::ValueId id, const std::string& label) {
  const ir::Node& node = graph[id];
  std::string text = node.op->as<ir::Argument>() ? fmt::format("{} {}", node.op->name.value, label)
                                                 : fmt::format("{} = {}", label, node.op->name.value);
  if (!node.name.empty() && !node.op->as<ir::Argument>()) text += "\n" + visible(node.name);
  if (node.loc.known()) text += "\n" + node.loc.to_string();
  return fmt::format("v{} [label={}, fillcolor=\"{}\"];\n", id.index, dot_quoted(text), fill(node_kind(*node.op)));
}

}  // namespace

std::string dot_text(const ir::Graph& graph) {
  const auto labels = ir::value_labels(graph);
  Cluster root;
  std::string edges;
  for (const ir::ValueId id : ir::all_values(graph)) {
    const ir::Node& node = graph[id];
    Cluster* cluster = &root;
    const std::string_view scope = node.op->as<ir::Argument>() ? std::string_view() : node.loc.scope();
    for (std::size_t at = 0, depth = 1; at < scope.size(); ++depth) {
      const std::size_t end = depth < most_clusters ? std::min(scope.find('.', at), scope.size()) : scope.size();
      cluster = &cluster->inner[std::string(scope.substr(at, end - at))];
      at = end + 1;
    }
    cluster->lines += node_line(graph, id, labels[id]);
    for (const ir::ValueId operand : node.operands)
      edges += fmt::format("v{} -> v{} [label={}];\n", operand.index, id.index,
                           dot_quoted(ir::print_type(graph[operand].type)));
  }
  std::string outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Output& output = graph.outputs[i];
    outputs += fmt::format("o{} [label={}, shape=oval];\nv{} -> o{} [label={}];\n", i,
                           dot_quoted("output " + visible(output.name)), output.value.index, i,
                           dot_quoted(ir::print_type(graph[output.value].type)));
  }
  for (const ir::Update& update : graph.updates)
    edges += fmt::format("v{} -> v{} [style=dashed, constraint=false, label=\"update\"];\n", update.value.index,
                         update.state.index);
  std::string text = fmt::format("digraph {} {{\n", dot_quoted(visible(graph.name)));
  text += "node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11];\nedge [fontsize=9];\n";
  int number = 0;
  write(root, "", number, text);
  return text + outputs + edges + "}\n";
}

}  // namespace lathe::tools
