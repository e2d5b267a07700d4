#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/train/training.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_attention.h"
#include "passes/machines/cpu_machine.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/dtypes/mixed_precision.h"
#include "tests/runtime/compiled/check_compiled.h"

/// User-defined ops, compiled and compared with the interpreter.
using namespace lathe;

namespace {

/// x * sigmoid(beta * x), with a backward.
CustomOp make_swish() {
  return custom_op(
      "my.swish", [](const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); },
      [](std::span<const Tensor> operands, const Tensor& result, const Tensor& grad) -> std::vector<Tensor> {
        const Tensor s = sigmoid(operands[1] * operands[0]);
        return {grad * (s + operands[1] * result * (1 - s)), grad * operands[0] * result * (1 - s)};
      });
}

/// A row softmax of scores between two matmuls, without a backward: an attention as a user-defined op.
CustomOp make_attention() {
  return custom_op("my.attention", [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return matmul(softmax(matmul(q, k.transpose(-2, -1)) * 0.5, -1), v);
  });
}

/// Two layers with both ops, and a loss.
Tensor build_loss(const Graph& g, DType dtype) {
  const CustomOp swish = make_swish(), attention = make_attention();
  const Tensor x = g.input("x", dtype, {Dim("n"), 4});
  const Tensor w = g.parameter("w", dtype, {4, 4}), beta = g.parameter("beta", dtype, {4});
  Tensor h = x;
  for (int layer = 0; layer < 2; ++layer) h = h + attention(linear(h, w), h, swish(h, beta));
  return (h * h).sum();
}

}  // namespace

TEST_CASE("custom ops compile, with their gradients", "[custom_op]") {
  const Graph g{"model"};
  const Tensor loss = build_loss(g, f64);
  g.output("loss", loss);
  for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
  test::check_compiled(g.finish(), {.sizes = test::n_sizes});
}

TEST_CASE("a training step with custom ops compiles, in mixed precision too", "[custom_op]") {
  const Graph g{"model"};
  const Tensor loss = build_loss(g, f32);
  test::check_compiled(training_step(g, loss, AdamW{.lr = 1e-3}), {.sizes = test::n_sizes, .tolerance = 1e-5});
  const Graph narrow{"model"};
  narrow.output("loss", build_loss(narrow, f32));
  test::check_compiled(ir::mixed_precision(narrow.finish(), bf16), {.sizes = test::n_sizes, .tolerance = 3e-2});
}

TEST_CASE("the ops inside a custom op fuse with their surroundings", "[custom_op]") {
  const CustomOp weights = custom_op("my.weights", [](const Tensor& scores) { return softmax(scores * 0.35, -1); });
  const Graph g{"model"};
  const Dim b{"b"}, s{"s"};
  const Tensor q = g.input("q", f32, {b, 4, s, 8}), k = g.input("k", f32, {b, 4, s, 8});
  const Tensor v = g.input("v", f32, {b, 4, s, 8});
  g.output("o", matmul(weights(matmul(q, k.transpose(-2, -1))), v));
  const Machine machine = cpu_machine(unnamed_cpu());
  const std::string told = explain_attention(
      lower_graph(ir::run_pipeline(g.finish(), ir::default_pipeline()).graph, machine), machine.info);
  INFO(told);
  CHECK(told.find("softmax at compiled_custom_ops.cpp:") != std::string::npos);
  CHECK(told.find(": fused") != std::string::npos);
  test::check_compiled(g.finish(), {.sizes = {{{"b", 2}, {"s", 9}}, {{"b", 1}, {"s", 40}}}, .tolerance = 1e-5});
}
