#include "passes/autodiff/sum_over_iterations.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

namespace {

using Form = IterationSum::Form;

/// Ops that move every element of their only operand exactly once, or change the sign.
bool is_linear(const Op& op) {
  return &op == &ops::transpose || &op == &ops::permute || &op == &ops::view || &op == &ops::reshape ||
         &op == &ops::contiguous || &op == &ops::unsqueeze || &op == &ops::squeeze || &op == &ops::neg;
}

/// Returns whether an operand of a node is a stack of all iterations of a loop in the body.
bool reads_stack(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.operands, [&](ValueId id) {
    while (is_linear(*graph[id].op)) id = graph[id].operands[0];
    return is_loop(graph[id]) && loop_result(graph[id]) >= carry_count(graph[id]);
  });
}

/// Returns a label that a contraction does not use.
char free_label(std::string_view spec) {
  for (const std::string_view letters : {"tuvwxyzabcdefghijklmnopqrs", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
    for (const char label : letters)
      if (spec.find(label) == std::string_view::npos) return label;
  throw InternalError(fmt::format("all letters are in '{}'", spec));
}

/// Returns the contraction that sums over a first dim of both operands too: "bi,bj->ij" becomes "tbi,tbj->ij".
std::string over_iterations(const std::string& spec) {
  const char label = free_label(spec);
  std::string wide = label + spec;
  wide.insert(wide.find(',') + 1, 1, label);
  return wide;
}

}  // namespace

IterationSum plan_iteration_sum(GraphBuilder& builder, ValueId value,
                                const std::function<bool(ValueId)>& is_invariant) {
  const Node node = builder.graph()[value];  // a copy: expansions add nodes
  const auto part = [&](int i) { return plan_iteration_sum(builder, node.operands[i], is_invariant); };
  if (const auto* composite = node.op->as<Composite>()) {
    std::vector<Value> operands;
    for (const ValueId operand : node.operands) operands.emplace_back(builder, operand);
    const GraphBuilder::At at(builder, node.loc);
    return plan_iteration_sum(builder, composite->expand(builder, node, operands).id(), is_invariant);
  }
  if (is_linear(*node.op)) {
    IterationSum inner = part(0);
    if (inner.form == Form::carried) return {.value = value};
    return {.form = Form::linear, .value = value, .of = {std::move(inner)}};
  }
  if (node.op == &ops::add) {
    const auto same = [&](int i) { return builder.graph()[node.operands[i]].type.shape == node.type.shape; };
    if (!same(0) || !same(1)) return {.value = value};
    IterationSum left = part(0), right = part(1);
    if (left.form == Form::carried && right.form == Form::carried) return {.value = value};
    return {.form = Form::sum, .value = value, .of = {std::move(left), std::move(right)}};
  }
  if (node.op == &ops::contract) {
    for (const int i : {0, 1})
      if (is_invariant(node.operands[i]))
        return {.form = Form::scaled, .value = value, .fixed = i, .of = {part(1 - i)}};
    if (reads_stack(builder.graph(), node)) return {.value = value};
    return {.form = Form::product, .value = value};
  }
  const auto* reduce = node.op->as<Reduce>();
  if (reduce && reduce->combine == ScalarOp::add && !reads_stack(builder.graph(), node))
    return {.form = Form::reduce, .value = value};
  return {.value = value};
}

void for_stacked(const IterationSum& sum, const Graph& graph, const std::function<void(ValueId)>& f) {
  if (sum.form == Form::product || sum.form == Form::reduce)
    for (const ValueId operand : graph[sum.value].operands) f(operand);
  for (const IterationSum& part : sum.of) for_stacked(part, graph, f);
}

void for_carried(const IterationSum& sum, const std::function<void(ValueId)>& f) {
  if (sum.form == Form::carried) f(sum.value);
  for (const IterationSum& part : sum.of) for_carried(part, f);
}

Value iteration_sum(const IterationSum& sum, const IterationValues& values) {
  const Node& node = values.graph[sum.value];
  const GraphBuilder::At at(values.builder, node.loc);
  const auto part = [&](std::size_t i) { return iteration_sum(sum.of[i], values); };
  switch (sum.form) {
    case Form::carried: return values.carried(sum.value);
    case Form::linear: {
      const Value inner = part(0);
      if (node.op == &ops::view) return reshape(inner, node.type.shape);  // a sum has strides of its own
      return values.builder.add(*node.op, {inner}, node.attrs);
    }
    case Form::sum: {
      const Value left = part(0);
      return add(left, part(1));
    }
    case Form::product:
      return contract(values.stacked(node.operands[0]), values.stacked(node.operands[1]),
                      over_iterations(node.attrs.get<std::string>("spec")));
    case Form::scaled: {
      const Value fixed = values.invariant(node.operands[sum.fixed]), other = part(0);
      const auto& spec = node.attrs.get<std::string>("spec");
      return sum.fixed == 0 ? contract(fixed, other, spec) : contract(other, fixed, spec);
    }
    case Form::reduce: {
      const Value all = values.stacked(node.operands[0]);
      std::vector<std::int64_t> dims{0};
      for (const int d : rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"), all.rank() - 1))
        dims.push_back(d + 1);
      const Value reduced = ir::sum(all, dims, false);
      return node.attrs.get<bool>("keepdim") ? reshape(reduced, node.type.shape) : reduced;
    }
  }
  throw InternalError("a form of sum out of range");
}

}  // namespace lathe::ir
