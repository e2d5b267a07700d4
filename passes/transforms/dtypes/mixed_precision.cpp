#include "passes/transforms/dtypes/mixed_precision.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/functional/functional.h"
#include "ir/ops/precision.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

/// Returns the largest finite value.
double largest(DType low_precision) { return low_precision == f16 ? 65504.0 : 0x1.fep127; }

class Mixer {
 public:
  Mixer(const Graph& graph, GraphBuilder& builder, DType low_precision)
      : graph_(graph), builder_(builder), to_(builder, graph), low_precision_(low_precision) {}

  void run() {
    for (const ValueId id : all_values(graph_)) to_.set(id, mixed(graph_[id]));
    for (const Output& output : graph_.outputs) builder_.output(output.name, as_before(output.value));
    for (const Update& update : graph_.updates) builder_.update(to_[update.state], as_before(update.value));
    builder_.add_checks(graph_.checks);
  }

 private:
  Value mixed(const Node& node) {
    if (node.op->as<Argument>()) return to_.copy(node);
    const GraphBuilder::At at(builder_, node.loc);
    auto operands = to_.operands(node);
    const DType dtype = computed_in(node, operands);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (graph_[node.operands[i]].type.dtype == f32 && node.op != &ops::cast) operands[i] = cast(operands[i], dtype);
    if (node.op == &ops::cast && operands[0].dtype() == node.type.dtype) return operands[0];
    return builder_.copy(node, operands);
  }

  /// Returns the dtype to which the f32 operands of a node are converted.
  DType computed_in(const Node& node, const std::vector<Value>& operands) const {
    switch (precision_of(graph_, node)) {
      case MixedPrecision::low_precision: return low_precision_;
      case MixedPrecision::f32: return f32;
      case MixedPrecision::follow: break;
      case MixedPrecision::expansion: throw InternalError("an expansion without a precision");
    }
    if (holds_too_large(node.attrs)) return f32;
    bool any = false;
    const bool tensors = std::any_of(operands.begin(), operands.end(), [](const Value& v) { return v.rank() > 0; });
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Node& before = graph_[node.operands[i]];
      if (before.type.dtype != f32) continue;
      if (before.op == &ops::constant && holds_too_large(before.attrs)) return f32;
      if (tensors && before.type.rank() == 0) continue;
      if (operands[i].dtype() != low_precision_) return f32;
      any = true;
    }
    return any ? low_precision_ : f32;
  }

  /// Whether the attributes have a finite number that the low-precision dtype cannot hold.
  bool holds_too_large(const Attributes& attrs) const {
    const auto too_large = [&](double x) { return std::isfinite(x) && std::abs(x) > largest(low_precision_); };
    const auto any_too_large = [&](const std::vector<double>& list) { return std::ranges::any_of(list, too_large); };
    for (const auto& [key, value] : attrs.entries()) {
      if (const auto* real = std::get_if<double>(&value); real && too_large(*real)) return true;
      if (const auto* number = std::get_if<Number>(&value); number && too_large(number->real())) return true;
      if (const auto* reals = std::get_if<std::vector<double>>(&value); reals && any_too_large(*reals)) return true;
      if (const auto* numbers = std::get_if<NumberList>(&value); numbers && any_too_large(numbers->reals()))
        return true;
    }
    return false;
  }

  /// Returns the new value of `id`, in its original dtype.
  Value as_before(ValueId id) const {
    const GraphBuilder::At at(builder_, graph_[id].loc);
    return cast(to_[id], graph_[id].type.dtype);
  }

  const Graph& graph_;
  GraphBuilder& builder_;
  Rebuilder to_;
  DType low_precision_;
};

}  // namespace

Graph mixed_precision(const Graph& graph, DType low_precision) {
  if (low_precision != bf16 && low_precision != f16)
    throw UserError(fmt::format("there is no mixed precision of f32 and {}", name(low_precision)), "mixed_precision",
                    "use bf16 or f16");
  for (const Update& update : graph.updates)
    if (graph[update.state].op == &ops::parameter)
      throw UserError(fmt::format("@{} updates the parameter {}: it is a training step already", graph.name,
                                  graph[update.state].name),
                      "mixed_precision", "choose the precision when the step is made, so that gradients have it too");
  GraphBuilder builder(graph.name);
  Mixer(graph, builder, low_precision).run();
  return builder.finish();
}

}  // namespace lathe::ir
