#pragma once

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/op/owned_op.h"

namespace lathe::ir::test {

inline std::vector<Sample> own_op_samples() {
  using Dims = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  for (const auto& [x, beta] : std::vector<std::pair<Dims, Dims>>{
           {{2, 3}, {3}}, {{2, 3}, {2, 3}}, {{2, 1}, {1, 3}}, {{3}, {}}, {{}, {}}, {{0, 3}, {3}}})
    samples.push_back({.operands = {{x, f64, -2, 2}, {beta, f64, 0.5, 2}}, .attrs = {{"scale", 0.5}}});
  samples.push_back({.operands = {{{2, 3}, f64, -2, 2}, {{3}, f64, 0.5, 2}}, .attrs = {}});
  return samples;
}

/// A user-defined op with an attribute and its own gradient: scale * x * sigmoid(beta * x). It must have all
/// properties that built-in ops have on their samples.
inline const OpRef& own_op() {
  const auto gradient = [](const GradientContext& g) {
    const double scale = g.node.attrs.get<double>("scale");
    const Value &x = g.operand(0), &beta = g.operand(1);
    const Value s = sigmoid(mul(beta, x)), slope = mul(s, sub(1.0, s)), grad = mul(g.grad, scale);
    if (g.needs(0)) g.set(0, mul(grad, add(s, mul(mul(x, beta), slope))));
    if (g.needs(1)) g.set(1, mul(grad, mul(mul(x, x), slope)));
  };
  static const OpRef op = OwnedOp::make({
      .name = "test.swish",
      .doc = "scale * x * sigmoid(beta * x), broadcast",
      .arity = {2, 2},
      .attrs = {{"scale", AttrKind::real, false, 1.0, "what the result is multiplied by"}},
      .labels = {"dtype_kind", "dtype_match", "broadcast"},
      .infer = [](const InferContext& ctx) { return rules::elementwise_type(ctx, rules::floats); },
      .expand =
          [](GraphBuilder&, const Node& node, std::span<const Value> operands) {
            const Value gate = sigmoid(mul(operands[1], operands[0]));
            return mul(mul(operands[0], gate), node.attrs.get<double>("scale"));
          },
      .gradient = gradient,
      .samples = own_op_samples(),
  });
  return op;
}

/// Returns every built-in op that computes something, and one user-defined op.
inline std::vector<const Op*> sampled_ops() {
  std::vector<const Op*> ops{own_op()};
  for (const Op* op : all_ops())
    if (!op->as<Argument>()) ops.push_back(op);
  return ops;
}

}  // namespace lathe::ir::test
