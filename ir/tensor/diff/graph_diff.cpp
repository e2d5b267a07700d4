#include "ir/tensor/diff/graph_diff.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/diff/match_values.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

using DiffKind = DiffLine::Kind;
using DiffPart = DiffLine::Part;

/// Returns a node's line without column padding, and its source line.
std::string diff_value_text(const Graph& graph, ValueId id, const NodeMap<std::string>& labels) {
  std::string text;
  for (const char c : print_node(graph, id, labels, {.locations = false})) {
    if (c == ':')
      while (text.ends_with("  ")) text.pop_back();
    text += c;
  }
  const Location& loc = graph[id].loc;
  return loc.known() ? fmt::format("{} ({})", text, loc.to_string()) : text;
}

/// Returns two texts that differ wherever the types do.
std::pair<std::string, std::string> differing_types(const TensorType& a, const TensorType& b) {
  std::pair<std::string, std::string> texts(print_type(a), print_type(b));
  if (texts.first == texts.second) texts = {print_type(a, true), print_type(b, true)};
  return texts;
}

class Differ {
 public:
  Differ(const Graph& a, const Graph& b, const DiffOptions& options)
      : a_(a),
        b_(b),
        options_(options),
        match_(match_values(a, b)),
        labels_a_(value_labels(a)),
        labels_b_(value_labels(b)),
        about_inserted_(b),
        about_removed_(a),
        changes_(b) {}

  GraphDiff run() && {
    if (options_.names && a_.name != b_.name)
      add(DiffKind::changed, DiffPart::graph, fmt::format("graph @{} -> @{}", a_.name, b_.name));
    for (const ValueId id : all_values(b_))
      if (match_.in_a[id].valid()) compare_values(match_.in_a[id], id);
    std::vector<DiffLine> outputs = output_lines();
    std::vector<DiffLine> updates = update_lines();
    argument_order();
    value_lines();
    for (std::vector<DiffLine>* lines : {&outputs, &updates})
      for (DiffLine& line : *lines) diff_.lines.push_back(std::move(line));
    check_lines();
    return std::move(diff_);
  }

 private:
  void add(DiffKind kind, DiffPart part, std::string text) { diff_.lines.push_back({kind, part, std::move(text)}); }

  bool same_value(ValueId a, ValueId b) const { return match_.in_b[a] == b; }

  /// If reading `b` instead of `a` follows from an inserted or a removed value, adds it to the line of that value.
  /// Returns whether it did.
  bool belongs_to_line(ValueId a, ValueId b, const std::string& reader) {
    if (!match_.in_a[b].valid()) {
      about_inserted_[b].push_back(fmt::format("{} it instead of {}", reader, labels_a_[a]));
      return true;
    }
    if (!match_.in_b[a].valid()) {
      about_removed_[a].push_back(fmt::format("{} {} instead", reader, labels_b_[b]));
      return true;
    }
    return false;
  }

  void compare_operands(ValueId a_id, ValueId b_id) {
    const Node &a = a_[a_id], &b = b_[b_id];
    if (a.operands.size() != b.operands.size()) {
      std::vector<std::string> of_a, of_b;
      for (const ValueId id : a.operands) of_a.push_back(labels_a_[id]);
      for (const ValueId id : b.operands) of_b.push_back(labels_b_[id]);
      changes_[b_id].push_back(fmt::format("operands {} -> {}", fmt::join(of_a, ", "), fmt::join(of_b, ", ")));
      return;
    }
    const std::string reader = fmt::format("{} {} reads", labels_b_[b_id], b.op->name.value);
    std::set<std::pair<ValueId, ValueId>> told;
    for (std::size_t i = 0; i < a.operands.size(); ++i) {
      const ValueId from = a.operands[i], to = b.operands[i];
      if (same_value(from, to) || !told.emplace(from, to).second) continue;
      if (!belongs_to_line(from, to, reader))
        changes_[b_id].push_back(fmt::format("operand {}: {} -> {}", i, labels_a_[from], labels_b_[to]));
    }
  }

  /// Adds the first difference of two bodies, without its lines.
  static void compare_bodies(const Node& a, const Node& b, std::vector<std::string>& changes) {
    for (const auto& [name, value] : a.attrs.entries()) {
      const auto* left = std::get_if<Body>(&value);
      const Attribute* other = left ? b.attrs.find(name) : nullptr;
      const auto* right = other ? std::get_if<Body>(other) : nullptr;
      if (!right) continue;
      if (const auto found = difference(left->graph(), right->graph()))
        changes.push_back(fmt::format("in its body {}", found->substr(0, found->find(":\n"))));
    }
  }

  void compare_attributes(const Node& a, const Node& b, std::vector<std::string>& changes) const {
    compare_bodies(a, b, changes);
    std::map<std::string, std::pair<std::string, std::string>> texts;
    for (const auto& [name, value] : a.attrs.entries()) texts[name].first = print_attribute(value);
    for (const auto& [name, value] : b.attrs.entries()) texts[name].second = print_attribute(value);
    for (const auto& [name, sides] : texts) {
      const auto& [before, after] = sides;
      if (before == after) continue;
      if ((before.empty() || after.empty()) && a.op->name.value != b.op->name.value) continue;  // of one op only
      changes.push_back(
          fmt::format("{} {} -> {}", name, before.empty() ? "none" : before, after.empty() ? "none" : after));
    }
  }

  /// Types are inferred: if an operand's type differs, the result's difference is its consequence.
  bool is_implied_type(const Node& a, const Node& b) const {
    for (std::size_t i = 0; i < std::min(a.operands.size(), b.operands.size()); ++i)
      if (!(a_[a.operands[i]].type == b_[b.operands[i]].type)) return true;
    return false;
  }

  void compare_values(ValueId a_id, ValueId b_id) {
    const Node &a = a_[a_id], &b = b_[b_id];
    std::vector<std::string>& changes = changes_[b_id];
    if (a.op->name.value != b.op->name.value) {
      changes.push_back(fmt::format("{} -> {}", a.op->name.value, b.op->name.value));
    }
    compare_attributes(a, b, changes);
    compare_operands(a_id, b_id);
    const bool differs = !(a.type == b.type);
    const bool implied = differs && !options_.implied_types && is_implied_type(a, b);
    if (differs && !implied) {
      const auto [before, after] = differing_types(a.type, b.type);
      changes.push_back(fmt::format("{} -> {}", before, after));
    }
    if (options_.names && a.name != b.name)
      changes.push_back(fmt::format("name {} -> {}", quoted(a.name), quoted(b.name)));
    if (options_.locations && a.loc != b.loc)
      changes.push_back(fmt::format("{} -> {}", print_location(a.loc), print_location(b.loc)));
    if (changes.empty()) ++(implied ? diff_.implied_types : diff_.same);
  }

  void argument_order() {
    std::vector<ValueId> kept;
    for (const ValueId id : b_.arguments())
      if (match_.in_a[id].valid()) kept.push_back(match_.in_a[id]);
    std::vector<ValueId> order;
    for (const ValueId id : a_.arguments())
      if (match_.in_b[id].valid()) order.push_back(id);
    const auto at = std::ranges::mismatch(order, kept);
    if (at.in1 != order.end())
      add(DiffKind::changed, DiffPart::argument,
          fmt::format("the order of the arguments differs: {} is where {} was", labels_a_[*at.in2],
                      labels_a_[*at.in1]));
  }

  static std::string with_readers(std::string text, const std::vector<std::string>& readers) {
    constexpr std::size_t most = 3;
    for (std::size_t i = 0; i < std::min(most, readers.size()); ++i) text += "; " + readers[i];
    if (readers.size() > most) text += fmt::format("; and {} more readers", readers.size() - most);
    return text;
  }

  void removed_line(ValueId id) {
    add(DiffKind::removed, a_[id].op->as<Argument>() ? DiffPart::argument : DiffPart::value,
        with_readers(diff_value_text(a_, id, labels_a_), about_removed_[id]));
  }

  /// Removed values come after the matched values that preceded them in a, and before inserted ones.
  void value_lines() {
    std::int32_t next = 0;
    const auto remove_before = [&](std::int32_t end) {
      for (; next < end; ++next)
        if (!match_.in_b[ValueId{next}].valid()) removed_line(ValueId{next});
    };
    NodeMap<std::int32_t> following(b_, a_.size());  // the position in a of the next matched value
    for (const ValueId id : reversed_values(b_)) {
      const ValueId partner = match_.in_a[id];
      following[id] = partner.valid()            ? partner.index
                      : id.index + 1 < b_.size() ? following[ValueId{id.index + 1}]
                                                 : a_.size();
    }
    for (const ValueId id : all_values(b_)) {
      const ValueId partner = match_.in_a[id];
      const DiffPart part = b_[id].op->as<Argument>() ? DiffPart::argument : DiffPart::value;
      remove_before(following[id]);
      if (!partner.valid())
        add(DiffKind::inserted, part, with_readers(diff_value_text(b_, id, labels_b_), about_inserted_[id]));
      else if (!changes_[id].empty())
        add(DiffKind::changed, part,
            fmt::format("{} {}{}: {}", labels_a_[partner], a_[partner].op->name.value,
                        a_[partner].loc.known() ? " (" + a_[partner].loc.to_string() + ")" : "",
                        fmt::join(changes_[id], ", ")));
    }
    remove_before(a_.size());
  }

  /// Compares lists of named results.
  using Results = std::vector<std::pair<std::string, ValueId>>;
  std::vector<DiffLine> result_lines(const Results& of_a, const Results& of_b, DiffPart part,
                                     const std::string& what) {
    std::vector<DiffLine> lines;
    const std::map<std::string, ValueId> in_a(of_a.begin(), of_a.end()), in_b(of_b.begin(), of_b.end());
    const auto text = [&](const std::string& name, const std::string& value) {
      return fmt::format("{} {}: {}", what, name, value);
    };
    for (const auto& [name, value] : of_a)
      if (!in_b.count(name)) lines.push_back({DiffKind::removed, part, text(name, labels_a_[value])});
    for (const auto& [name, value] : of_b) {
      const auto found = in_a.find(name);
      if (found == in_a.end())
        lines.push_back({DiffKind::inserted, part, text(name, labels_b_[value])});
      else if (!same_value(found->second, value) &&
               !belongs_to_line(found->second, value, fmt::format("{} {} is", what, name)))
        lines.push_back({DiffKind::changed, part,
                         text(name, fmt::format("{} -> {}", labels_a_[found->second], labels_b_[value]))});
    }
    const auto names = [](const Results& results) {
      std::vector<std::string> list;
      for (const auto& [name, value] : results) list.push_back(name);
      return list;
    };
    if (lines.empty() && names(of_a) != names(of_b))
      lines.push_back({DiffKind::changed, part, fmt::format("the order of the {}s differs", what)});
    return lines;
  }

  std::vector<DiffLine> output_lines() {
    const auto of = [](const Graph& graph) {
      Results results;
      for (const Output& output : graph.outputs) results.emplace_back(quoted(output.name), output.value);
      return results;
    };
    return result_lines(of(a_), of(b_), DiffPart::output, "output");
  }

  std::vector<DiffLine> update_lines() {
    const auto of = [](const Graph& graph, const NodeMap<std::string>& labels) {
      Results results;
      for (const Update& update : graph.updates) results.emplace_back(labels[update.state], update.value);
      return results;
    };
    return result_lines(of(a_, labels_a_), of(b_, labels_b_), DiffPart::update, "update");
  }

  void check_lines() {
    const auto of = [&](const Graph& graph) {
      std::multiset<std::string> checks;
      for (const DimCheck& check : graph.checks) {
        std::string text = fmt::format(
            "check {} {} {} [{}]", check.left.to_string(),
            check.relation == DimCheck::Relation::equal ? "==" : "<=", check.right.to_string(), check.label);
        if (options_.locations) text += " " + check.loc.to_string();
        checks.insert(std::move(text));
      }
      return checks;
    };
    const auto before = of(a_), after = of(b_);
    std::vector<std::string> removed, inserted;
    std::ranges::set_difference(before, after, std::back_inserter(removed));
    std::ranges::set_difference(after, before, std::back_inserter(inserted));
    for (std::string& text : removed) add(DiffKind::removed, DiffPart::check, std::move(text));
    for (std::string& text : inserted) add(DiffKind::inserted, DiffPart::check, std::move(text));
  }

  const Graph &a_, &b_;
  DiffOptions options_;
  ValueMatch match_;
  NodeMap<std::string> labels_a_, labels_b_;
  NodeMap<std::vector<std::string>> about_inserted_;  // by value of b: the values that read it now
  NodeMap<std::vector<std::string>> about_removed_;   // by value of a: the value that its readers read instead
  NodeMap<std::vector<std::string>> changes_;         // by value of b
  GraphDiff diff_;
};

constexpr std::string_view diff_sign(DiffKind kind) {
  return kind == DiffKind::inserted ? "+" : kind == DiffKind::removed ? "-" : "~";
}

std::string_view diff_part_name(DiffPart part) {
  switch (part) {
    case DiffPart::graph: return "graph name";
    case DiffPart::argument: return "argument";
    case DiffPart::value: return "value";
    case DiffPart::output: return "output";
    case DiffPart::update: return "update";
    case DiffPart::check: return "check";
  }
  return "value";
}

}  // namespace

GraphDiff diff(const Graph& a, const Graph& b, const DiffOptions& options) { return Differ(a, b, options).run(); }

std::string to_string(const GraphDiff& diff) {
  std::string text;
  for (const DiffLine& line : diff.lines) text += fmt::format("{} {}\n", diff_sign(line.kind), line.text);
  return text;
}

std::string summary(const GraphDiff& diff) {
  std::map<std::pair<DiffPart, DiffKind>, int> counts;
  for (const DiffLine& line : diff.lines) ++counts[{line.part, line.kind}];
  std::vector<std::string> parts;
  for (const auto& [key, count] : counts)
    parts.push_back(fmt::format("{} {}{} {}", count, diff_part_name(key.first), count == 1 ? "" : "s",
                                key.second == DiffKind::inserted  ? "inserted"
                                : key.second == DiffKind::removed ? "removed"
                                                                  : "changed"));
  const auto values = [](int count) { return count == 1 ? std::string("1 value") : fmt::format("{} values", count); };
  std::string text = parts.empty() ? "no difference" : fmt::format("{}", fmt::join(parts, ", "));
  if (diff.implied_types > 0) text += fmt::format("; the types of {} differ as a result", values(diff.implied_types));
  return text + fmt::format("; {} {} equal", values(diff.same), diff.same == 1 ? "is" : "are");
}

}  // namespace lathe::ir
