#include "passes/autodiff/loop_body_gradient.h"

#include <algorithm>
#include <string>

#include "ir/ops/draws.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "passes/autodiff/backward.h"

namespace lathe::ir {

namespace {

bool has_gradient(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// Differentiates the body. Gradients arrive at the next values of the given carries, and of no others.
BodyGradient differentiate_once(const Graph& body, const std::vector<bool>& carries,
                                const std::vector<bool>& outputs) {
  BodyGradient gradient{.builder = std::make_shared<GraphBuilder>(Graph(body)), .forward = body.size()};
  GraphBuilder& builder = *gradient.builder;
  std::vector<Cotangent> seeds;
  const auto arrive = [&](ValueId value, const std::string& name) {
    const TensorType type = body[value].type;
    const GraphBuilder::At at(builder, body[value].loc.as_gradient());
    const Value seed = builder.argument(ops::input, builder.free_name(name), type.dtype, type.shape);
    seeds.push_back({value, seed});
    return seed;
  };
  const std::vector<ValueId> arguments = body.arguments();
  for (std::size_t i = 0; i < carries.size(); ++i)
    gradient.next.push_back(
        carries[i] ? std::optional(arrive(next_of(body, static_cast<int>(i)), "grad." + body[arguments[i]].name))
                   : std::nullopt);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    gradient.outputs.push_back(
        outputs[i] ? std::optional(arrive(body.outputs[i].value, "grad." + body.outputs[i].name)) : std::nullopt);
  std::vector<ValueId> targets;
  for (const ValueId argument : arguments)
    if (has_gradient(body[argument].type.dtype)) targets.push_back(argument);
  const auto found = backward(builder, seeds, targets);
  std::size_t next = 0;
  for (const ValueId argument : arguments)
    gradient.arguments.push_back(has_gradient(body[argument].type.dtype) ? found[next++] : std::nullopt);
  return gradient;
}

}  // namespace

BodyGradient differentiate_body(const Graph& body, std::vector<bool> carries, const std::vector<bool>& outputs) {
  /// Adds the carries at which gradients arrive, and returns whether there are new ones.
  const auto reaches_more = [&](const BodyGradient& gradient) {
    const std::vector<bool> before = carries;
    for (std::size_t i = 0; i < carries.size(); ++i) carries[i] = carries[i] || gradient.arguments[i].has_value();
    return carries != before;
  };
  BodyGradient gradient = differentiate_once(body, carries, outputs);
  while (reaches_more(gradient)) gradient = differentiate_once(body, carries, outputs);
  return gradient;
}

SavedForGradient::SavedForGradient(const BodyGradient& gradient)
    : gradient_(gradient), needed_(gradient.builder->graph(), false) {}

bool SavedForGradient::is_saved(ValueId id) const {
  if (!gradient_.is_forward(id)) return false;
  const Graph& graph = gradient_.builder->graph();
  const Node& node = graph[id];
  if (node.op->as<Argument>()) return node.op == &ops::state;
  if (node.operands.empty()) return false;
  if (std::ranges::find(graph.outputs, id, &Output::value) != graph.outputs.end()) return true;  // stacked anyway
  const auto is_cheap = [&](const Node& each) {
    return each.op->as<Elementwise>() || each.op->as<View>() || each.op->as<Argument>() || each.operands.empty() ||
           is_draw(*each.op);
  };
  if (!is_cheap(node)) return true;
  // The sum of a product and something else takes no more memory than the product, and fewer operations later.
  return std::ranges::any_of(node.operands, [&](ValueId operand) {
    return !is_cheap(graph[operand]) && graph[operand].type.shape.numel() == node.type.shape.numel() &&
           node.op->as<Elementwise>();
  });
}

void SavedForGradient::need(ValueId id) {
  std::vector<ValueId> open{id};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (needed_[next]) continue;
    needed_[next] = true;
    if (is_saved(next)) continue;
    for (const ValueId operand : gradient_.builder->graph()[next].operands) open.push_back(operand);
  }
}

std::vector<ValueId> SavedForGradient::saved() const {
  std::vector<ValueId> found;
  for (const ValueId id : all_values(gradient_.builder->graph()))
    if (needed_[id] && is_saved(id)) found.push_back(id);
  return found;
}

}  // namespace lathe::ir
