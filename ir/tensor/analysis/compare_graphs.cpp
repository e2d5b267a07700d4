#include "ir/tensor/analysis/compare_graphs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

using Difference = std::optional<std::string>;

/// Returns the values in IR text order: arguments first, then the rest.
std::vector<ValueId> text_order(const Graph& graph) {
  std::vector<ValueId> order = graph.arguments();
  for (const ValueId id : all_values(graph))
    if (!graph[id].op->as<Argument>()) order.push_back(id);
  return order;
}

NodeMap<std::int32_t> positions(const Graph& graph, const std::vector<ValueId>& order) {
  NodeMap<std::int32_t> at(graph, -1);
  for (std::size_t i = 0; i < order.size(); ++i) at[order[i]] = static_cast<std::int32_t>(i);
  return at;
}

/// The printed form shows dims' names, and a NaN equals itself; equal values have equal text.
bool same_attributes(const Attributes& a, const Attributes& b, bool names) {
  if (names || a != b) {
    if (a.entries().size() != b.entries().size()) return false;
    for (std::size_t i = 0; i < a.entries().size(); ++i) {
      const auto& [a_name, a_value] = a.entries()[i];
      const auto& [b_name, b_value] = b.entries()[i];
      if (a_name != b_name || a_value.index() != b_value.index()) return false;
      if (const auto* body = std::get_if<Body>(&a_value)) {
        const Body& other = std::get<Body>(b_value);
        if (!(names ? body->looks_like(other) : *body == other)) return false;
        continue;
      }
      if (!names && a_value == b_value) continue;
      if (print_attribute(a_value) != print_attribute(b_value)) return false;
    }
  }
  return true;
}

bool same_type(const TensorType& a, const TensorType& b, bool names) {
  return a == b && (!names || a.to_string() == b.to_string());
}

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b, const CompareOptions& options)
      : a_(a),
        b_(b),
        options_(options),
        a_order_(text_order(a)),
        b_order_(text_order(b)),
        a_at_(positions(a, a_order_)),
        b_at_(positions(b, b_order_)) {}

  Difference run() const {
    if (options_.names && a_.name != b_.name) return fmt::format("graph @{} against @{}", a_.name, b_.name);
    for (std::size_t i = 0; i < std::min(a_order_.size(), b_order_.size()); ++i)
      if (const auto what = node(a_order_[i], b_order_[i]))
        return fmt::format("{}:\n  {}\n  {}", *what, print_node(a_, a_order_[i]), print_node(b_, b_order_[i]));
    if (a_order_.size() != b_order_.size()) {
      const bool more = a_order_.size() > b_order_.size();
      const std::size_t i = std::min(a_order_.size(), b_order_.size());
      return fmt::format("{} values against {}; the first without a partner:\n  {}", a_order_.size(), b_order_.size(),
                         more ? print_node(a_, a_order_[i]) : print_node(b_, b_order_[i]));
    }
    if (auto difference = results()) return difference;
    return checks();
  }

 private:
  bool same_value(ValueId a, ValueId b) const { return a_at_[a] == b_at_[b]; }

  /// Describes which part of two nodes differs.
  Difference node(ValueId a_id, ValueId b_id) const {
    const Node &a = a_[a_id], &b = b_[b_id];
    if (a.op != b.op) return "the op differs";
    if (!std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                    [&](ValueId x, ValueId y) { return same_value(x, y); }))
      return "the operands differ";
    if (!same_attributes(a.attrs, b.attrs, options_.names)) return "the attributes differ";
    if (!same_type(a.type, b.type, options_.names)) return "the type differs";
    if ((options_.names || a.op->as<Argument>()) && a.name != b.name) return "the name differs";
    if (options_.locations && a.loc != b.loc) return "the location differs";
    return std::nullopt;
  }

  Difference results() const {
    if (a_.outputs.size() != b_.outputs.size())
      return fmt::format("{} outputs against {}", a_.outputs.size(), b_.outputs.size());
    for (std::size_t i = 0; i < a_.outputs.size(); ++i)
      if (a_.outputs[i].name != b_.outputs[i].name || !same_value(a_.outputs[i].value, b_.outputs[i].value))
        return fmt::format("output {} {} differs", i, quoted(a_.outputs[i].name));
    if (a_.updates.size() != b_.updates.size())
      return fmt::format("{} updates against {}", a_.updates.size(), b_.updates.size());
    for (std::size_t i = 0; i < a_.updates.size(); ++i)
      if (!same_value(a_.updates[i].state, b_.updates[i].state) ||
          !same_value(a_.updates[i].value, b_.updates[i].value))
        return fmt::format("the update of {} differs", a_[a_.updates[i].state].name);
    return std::nullopt;
  }

  Difference checks() const {
    if (a_.checks.size() != b_.checks.size())
      return fmt::format("{} run-time checks against {}", a_.checks.size(), b_.checks.size());
    for (std::size_t i = 0; i < a_.checks.size(); ++i) {
      DimCheck left = a_.checks[i], right = b_.checks[i];
      if (!options_.locations) left.loc = right.loc = {};
      if (!(left == right)) return fmt::format("run-time check {} [{}] differs", i, left.label);
    }
    return std::nullopt;
  }

  const Graph &a_, &b_;
  CompareOptions options_;
  std::vector<ValueId> a_order_, b_order_;
  NodeMap<std::int32_t> a_at_, b_at_;
};

}  // namespace

std::optional<std::string> difference(const Graph& a, const Graph& b, const CompareOptions& options) {
  return Comparison(a, b, options).run();
}

}  // namespace lathe::ir
