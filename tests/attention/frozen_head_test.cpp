#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_attention.h"
#include "passes/machines/cpu_machine.h"
#include "tests/attention/attention_check.h"

/// A loss with a frozen output layer: logits, their softmax and the matmul with the weights form an attention from
/// hidden states to the rows of the layer.
using namespace lathe;

namespace {

/// The loss of the tokens with a label, times a weight and divided by their number, and the gradient of the states.
ir::Graph weighted_loss(std::optional<DType> dtype) {
  const DType computed = dtype.value_or(f32);
  Graph g{"frozen_head"};
  const Dim B{"B"}, T{"T"}, vocab{"vocab", 90}, d{"d", 16};
  const Tensor x = g.input("x", computed, {B, T, d}), w = g.input("w", computed, {vocab, d});
  const Tensor weight = g.input("weight", computed, {});
  const Tensor position = g.arange(T, i64) + g.full({B, T}, 0, i64);  // [B, T]
  const Tensor labels = where(position < 3, -100.0, position * 2 + 3);
  const Tensor count = (labels != -100).to(i64).sum().to(computed);
  const Tensor loss = cross_entropy(linear(x, w), labels, -100) * (count * weight);
  g.output("loss", loss);
  g.output("dx", grad(loss, {x})[0]);
  return g.finish();
}

}  // namespace

TEST_CASE("the loss of a frozen output layer is fused when its gradient is scaled by the label count") {
  const ir::Graph graph = ir::run_pipeline(weighted_loss({}), ir::default_pipeline()).graph;
  const Machine machine = cpu_machine(unnamed_cpu());
  CHECK_THAT(explain_attention(lower_graph(graph, machine), machine.info), Catch::Contains(": fused"));
  test::check_attention(weighted_loss, {.sizes = {{{"B", 2}, {"T", 9}}, {{"B", 1}, {"T", 40}}}});
}
