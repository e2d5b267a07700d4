#include "bench/cases/scaling_cases.h"

#include <fmt/core.h>

#include "frontend/dsl.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/step.h"

namespace lathe::bench {

namespace {

constexpr int width = 32;

ir::Graph gpt2(int layers) {
  return training_step(models::loss_graph(models::gpt2_config(layers)).graph, "loss", AdamW{.lr = 1e-3},
                       {.clip_norm = 1.0});
}

/// A training step of h' = tanh(x[t] W + h U), unrolled over time, with the mean of all h as the loss.
ir::Graph unrolled(int steps) {
  Graph g("unrolled");
  const Dim batch("batch", 16);
  const Tensor x = g.input("x", f32, {batch, steps, width});
  const Tensor w = g.parameter("w", f32, {width, width}), u = g.parameter("u", f32, {width, width});
  Tensor h = g.full({batch, width}, 0.0, f32);
  std::vector<Tensor> outputs;
  for (int t = 0; t < steps; ++t) {
    h = tanh(linear(x.slice(1, t, t + 1).squeeze(1), w) + linear(h, u));
    outputs.push_back(h);
  }
  return training_step(g, square(stack(outputs, 1)).mean(), AdamW{.lr = 1e-3});
}

Tensors unrolled_inputs(int steps) { return {{"x", HostTensor(f32, {16, steps, width})}}; }

Tensors vector_inputs(int) { return {{"x", HostTensor(f32, {64, width})}}; }

Tensor vector_input(const Graph& g) { return g.input("x", f32, {Dim("n"), width}); }

ir::Graph chain(int ops) {
  Graph g("chain");
  const Tensor x = vector_input(g);
  Tensor y = x;
  for (int i = 0; i < ops; ++i) y = i % 2 ? y + x : y * x;
  g.output("y", y);
  return g.finish();
}

/// A chain of reductions that cannot be in one kernel.
ir::Graph row_sums(int sums) {
  Graph g("row_sums");
  Tensor y = vector_input(g);
  for (int i = 0; i < sums; ++i) y = y - y.sum(1, true);
  g.output("y", y);
  return g.finish();
}

ir::Graph products(int count) {
  Graph g("products");
  Tensor y = vector_input(g);
  const Tensor w = g.parameter("w", f32, {width, width});
  for (int i = 0; i < count; ++i) y = relu(linear(y, w));
  g.output("y", y);
  return g.finish();
}

/// One value that all others read; the result is their sum.
ir::Graph fan_out(int readers) {
  Graph g("fan_out");
  const Tensor x = exp(vector_input(g));
  Tensor y = x;
  for (int i = 0; i < readers; ++i) y = y + tanh(x * (1.0 + i));
  g.output("y", y);
  return g.finish();
}

/// One value with `count` outputs.
ir::Graph outputs(int count) {
  Graph g("outputs");
  const Tensor x = exp(vector_input(g));
  for (int i = 0; i < count; ++i) g.output(fmt::format("y{}", i), x * (1.0 + i));
  return g.finish();
}

/// A tree of pairwise sums of `leaves` values.
ir::Graph tree(int leaves) {
  Graph g("tree");
  const Tensor x = vector_input(g);
  std::vector<Tensor> level;
  for (int i = 0; i < leaves; ++i) level.push_back(x * (1.0 + i));
  while (level.size() > 1) {
    std::vector<Tensor> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2) next.push_back(level.back());
    level = std::move(next);
  }
  g.output("y", level.front());
  return g.finish();
}

/// A training step whose loss has one parameter per factor.
ir::Graph parameters(int count) {
  Graph g("parameters");
  Tensor y = vector_input(g);
  for (int i = 0; i < count; ++i) y = y * g.parameter(fmt::format("p{}", i), f32, {width});
  return training_step(g, y.mean(), AdamW{.lr = 1e-3}, {.clip_norm = 1.0});
}

ir::Graph slices(int count) {
  Graph g("slices");
  const Tensor x = g.input("x", f32, {count, width});
  const Tensor p = g.parameter("p", f32, {count, width});
  std::vector<Tensor> rows;
  for (int i = 0; i < count; ++i) rows.push_back((x * p).slice(0, i, i + 1));
  return training_step(g, square(concat(rows, 0)).mean(), AdamW{.lr = 1e-3});
}

}  // namespace

std::vector<ScalingCase> scaling_cases() {
  return {
      {"gpt2", "layers", {12, 24, 48, 96, 192}, gpt2},
      {"unrolled", "steps", {64, 128, 256, 512}, unrolled, unrolled_inputs},
      {"chain", "ops", {1250, 2500, 5000, 10000}, chain, vector_inputs},
      {"row_sums", "reductions", {250, 500, 1000, 2000}, row_sums, vector_inputs},
      {"products", "products", {250, 500, 1000, 2000}, products},
      {"fan_out", "readers", {1250, 2500, 5000, 10000}, fan_out, vector_inputs},
      {"outputs", "outputs", {1250, 2500, 5000, 10000}, outputs, vector_inputs},
      {"tree", "leaves", {1250, 2500, 5000, 10000}, tree, vector_inputs},
      {"slices", "slices", {64, 128, 256, 512}, slices},
      {"parameters", "parameters", {1250, 2500, 5000, 10000}, parameters},
  };
}

}  // namespace lathe::bench
