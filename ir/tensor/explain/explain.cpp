#include "ir/tensor/explain/explain.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/visible.h"
#include "ir/tensor/analysis/layers.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

std::vector<ValueId> computed(const Graph& graph) {
  std::vector<ValueId> ids;
  for (const ValueId id : all_values(graph))
    if (!graph[id].op->as<Argument>()) ids.push_back(id);
  return ids;
}

/// Returns a placeholder for collapsed values: "h.1 .. h.5: as h.0, 31 values each (%15 .. %69)".
std::string layers_text(const RepeatedLayers& repeated, std::string_view noun) {
  RepeatedLayers others = repeated;
  others.layers.erase(others.layers.begin());
  const std::size_t each = (repeated.end - repeated.second) / others.layers.size();
  const std::string name =
      others.layers.size() == 1 ? fmt::format("{}.{}", others.prefix, others.layers[0]) : to_string(others);
  return fmt::format("{}{}: as {}.{}, {} {} each", repeated.gradient ? "gradient of " : "", name, others.prefix,
                     repeated.layers.front(), each, noun);
}

/// Returns the end of the run of values from `begin` on that share a source line, such as an optimizer's updates.
std::size_t line_end(const Graph& graph, const std::vector<ValueId>& values, std::size_t begin) {
  std::size_t end = begin;
  const Location& loc = graph[values[begin]].loc;
  while (loc.known() && end < values.size() && graph[values[end]].loc == loc) ++end;
  return end;
}

/// Calls `show` for each value. Calls `skip` with a text and a range for layers that repeat the previous one, and for
/// the remainder of many values of one source line.
template <class Show, class Skip>
void walk(const Graph& graph, const std::vector<ValueId>& values, std::string_view noun, bool collapse, Show&& show,
          Skip&& skip) {
  constexpr std::size_t most_of_a_line = 40, shown_of_a_line = 8;
  const auto repeats = collapse ? repeated_layers(graph, values) : std::vector<RepeatedLayers>();
  auto next = repeats.begin();
  for (std::size_t i = 0; i < values.size();) {
    if (next != repeats.end() && i == next->second) {
      skip(layers_text(*next, noun), i, next->end);
      i = next->end;
      ++next;
      continue;
    }
    const std::size_t end = std::min(line_end(graph, values, i), next == repeats.end() ? values.size() : next->begin);
    if (!collapse || end < i + most_of_a_line) {
      show(values[i++]);
      continue;
    }
    for (const std::size_t stop = i + shown_of_a_line; i < stop; ++i) show(values[i]);
    const Location& loc = graph[values[i]].loc;
    skip(fmt::format("{} more {} of {}{}{}", end - i, noun, loc.to_string(), loc.scope().empty() ? "" : " in ",
                     visible(loc.scope())),
         i, end);
    i = end;
  }
}

/// Describes the number of elements of all values of this op, if known.
std::string count_text(const Graph& graph, std::string_view op) {
  int count = 0;
  Dim elements(0);
  for (const ValueId id : graph.arguments())
    if (graph[id].op->name.value == op) {
      ++count;
      elements = elements + graph[id].type.shape.numel();
    }
  if (count == 0) return {};
  return fmt::format("{} {}{} ({} numbers)", count, op, count == 1 ? "" : "s", elements.to_string());
}

class Explanation {
 public:
  Explanation(const Graph& graph, const ExplainOptions& options)
      : graph_(graph), options_(options), labels_(value_labels(graph)) {}

  std::string text() {
    text_ = fmt::format("graph @{}: ", visible(graph_.name));
    std::string counts;
    for (const std::string_view op : {"input", "parameter", "state"})
      if (const std::string count = count_text(graph_, op); !count.empty()) counts += count + ", ";
    const std::vector<ValueId> arguments = graph_.arguments(), values = computed(graph_);
    text_ += counts + fmt::format("{} values\n", values.size());
    for (const auto* list : {&arguments, &values}) measure(*list);
    section("arguments", arguments, "arguments");
    section("values", values, "values");
    results();
    return text_;
  }

 private:
  std::string title(ValueId id) const {
    const Node& node = graph_[id];
    const std::string& label = labels_[id];
    return node.op->as<Argument>() || node.name.empty() ? label : label + " " + visible(node.name);
  }

  void measure(const std::vector<ValueId>& ids) {
    constexpr std::size_t widest_title = 28, widest_type = 48;
    for (const ValueId id : ids) {
      title_ = std::max(title_, std::min(widest_title, title(id).size()));
      op_ = std::max(op_, graph_[id].op->name.value.size());
      type_ = std::max(type_, std::min(widest_type, print_type(graph_[id].type).size()));
    }
  }

  void section(std::string_view heading, const std::vector<ValueId>& ids, std::string_view noun) {
    if (ids.empty()) return;
    text_ += fmt::format("\n{}\n", heading);
    walk(
        graph_, ids, noun, options_.collapse_layers, [&](ValueId id) { step(id); },
        [&](const std::string& what, std::size_t, std::size_t) { text_ += fmt::format("  ... {}\n", what); });
  }

  void step(ValueId id) {
    const Node& node = graph_[id];
    std::string line = fmt::format("  {:<{}}  {:<{}}  {:<{}}", title(id), title_, node.op->name.value, op_,
                                   print_type(node.type), type_);
    if (node.loc.known()) {
      line += "  " + node.loc.to_string();
      if (!node.loc.scope().empty()) line += fmt::format(" in {}", visible(node.loc.scope()));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text_ += line + "\n";
    if (!node.op->as<Argument>()) text_ += fmt::format("  {:{}}  {}\n", "", title_, shape_reason(graph_, id));
  }

  void results() {
    const auto name = [&](ValueId id) { return labels_[id]; };
    if (!graph_.outputs.empty() || !graph_.updates.empty()) text_ += "\nresults\n";
    for (const Output& output : graph_.outputs)
      text_ += fmt::format("  output {}: {} {}\n", visible(output.name), name(output.value),
                           print_type(graph_[output.value].type));
    for (const Update& update : graph_.updates)
      text_ += fmt::format("  {} becomes {}\n", name(update.state), name(update.value));
    if (!graph_.checks.empty()) text_ += "\nchecks when the dims are known\n";
    for (const DimCheck& check : graph_.checks)
      text_ += fmt::format("  {} {} {}  for {} at {} [{}]\n", check.left.to_string(),
                           check.relation == DimCheck::Relation::equal ? "==" : "<=", check.right.to_string(),
                           check.op, check.loc.to_string(), check.label);
  }

  const Graph& graph_;
  ExplainOptions options_;
  NodeMap<std::string> labels_;
  std::size_t title_ = 0, op_ = 0, type_ = 0;
  std::string text_;
};

}  // namespace

std::string print_short(const Graph& graph) {
  const PrintOptions options{.locations = false};
  const NodeMap<std::string> labels = value_labels(graph);
  const auto label = [&](ValueId id) { return labels[id]; };
  std::string text = fmt::format("graph {}(\n", sigiled('@', graph.name));
  const auto list = [&](const std::vector<ValueId>& values, std::string_view noun) {
    walk(
        graph, values, noun, true, [&](ValueId id) { text += "  " + print_node(graph, id, labels, options) + "\n"; },
        [&](const std::string& what, std::size_t begin, std::size_t end) {
          text += fmt::format("  // {} ({} .. {})\n", what, label(values[begin]), label(values[end - 1]));
        });
  };
  list(graph.arguments(), "arguments");
  text += ") {\n";
  list(computed(graph), "values");
  for (const Output& output : graph.outputs)
    text += fmt::format("  output {} {}\n", quoted(output.name), label(output.value));
  constexpr std::size_t most_updates = 8;
  if (graph.updates.size() <= most_updates) {
    for (const Update& update : graph.updates)
      text += fmt::format("  update {} <- {}\n", label(update.state), label(update.value));
  } else {
    text += fmt::format("  // {} updates in place\n", graph.updates.size());
  }
  return text + "}\n";
}

std::string explain(const Graph& graph, const ExplainOptions& options) { return Explanation(graph, options).text(); }

}  // namespace lathe::ir
