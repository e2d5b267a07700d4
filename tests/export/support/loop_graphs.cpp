#include "tests/export/support/loop_graphs.h"

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/loops.h"
#include "frontend/ops/ops.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/loops/simplify_loops.h"

namespace lathe::test {

namespace {

const Dim& steps() {
  static const Dim T{"T"};
  return T;
}

/// h = tanh(h w + x), for x [T, 3, 4] and h [3, 4].
std::pair<Tensor, Tensor> recurrence(const Graph& g, DType dtype, bool reverse) {
  const Tensor x = g.input("x", dtype, {steps(), 3, 4}), w = g.parameter("w", dtype, {4, 4});
  return scan(g.input("h", dtype, {3, 4}), x,
              [&](const Tensor& h, const Tensor& row) {
                const Tensor next = tanh(matmul(h, w) + row);
                return std::pair(next, next * 2);
              },
              {.reverse = reverse});
}

ir::Graph recurrent(DType dtype, bool reverse, bool has_gradient) {
  const Graph g("recurrent");
  const auto [last, all] = recurrence(g, dtype, reverse);
  g.output("last", last);
  g.output("all", all);
  if (has_gradient) g.output("dw", grad((all * all).sum() + last.sum(), g.parameters())[0]);
  return g.finish();
}

/// A sum over the pairs of two sequences, an output that is a value around the loop, and one that is an element.
ir::Graph nested(DType dtype) {
  const Graph g("nested");
  const Tensor x = g.input("x", dtype, {steps(), 3, 4});
  const Tensor scale = x.sum();
  const ScanBody outer = [&](std::span<const Tensor> carries, std::span<const Tensor> rows) {
    const ScanBody inner = [&](std::span<const Tensor> sums, std::span<const Tensor> columns) {
      return LoopStep{{sums[0] + columns[0] * rows[0].sum() * scale}, {columns[0]}};
    };
    const LoopResults sums = scan({carries[0]}, {rows[0]}, inner);
    return LoopStep{{sums.carries[0]}, {scale, rows[0], sums.outputs[0]}};
  };
  const LoopResults results = scan({g.input("h", dtype, {3, 4}).sum(0)}, {x}, outer);
  g.output("sum", results.carries[0]);
  for (std::size_t i = 0; i < results.outputs.size(); ++i) g.output("all" + std::to_string(i), results.outputs[i]);
  return g.finish();
}

/// Loops without sequences in the graph that is exported, and without carries.
ir::Graph counted(DType dtype) {
  const Graph g("counted");
  const Tensor x = g.input("x", dtype, {steps(), 3, 4});
  g.output("power", repeat(3, x.sum(0), [](const Tensor& h, const Tensor&) { return h * h - h; }));
  g.output("late",
           repeat(steps(), x.sum(0), [](const Tensor& h, const Tensor& i) { return h * 0.5 + i.to(h.dtype()); }));
  const ScanBody each = [](std::span<const Tensor>, std::span<const Tensor> rows) {
    return LoopStep{{}, {softmax(rows[0], -1)}};
  };
  g.output("each", scan({}, {x}, each).outputs[0]);
  return ir::dce(ir::simplify_loops(g.finish()));
}

ir::Graph linear(DType dtype) {
  const Graph g("linear");
  const Tensor x = g.input("x", dtype, {steps(), 3, 4});
  const Tensor y = linear_recurrence(sigmoid(x), x, 0);
  g.output("y", y);
  g.output("dx", grad(y.square().sum(), {x})[0]);
  g.output("back", linear_recurrence(sigmoid(x), x, 2, {.reverse = true}));
  return g.finish();
}

}  // namespace

std::vector<LoopGraph> loop_graphs(DType dtype) {
  Tensors arguments{
      {"x", HostTensor(dtype, {5, 3, 4})}, {"h", HostTensor(dtype, {3, 4})}, {"w", HostTensor(dtype, {4, 4})}};
  for (auto& [name, values] : arguments)
    for (std::int64_t i = 0; i < values.numel(); ++i) values.set(i, 0.1 * static_cast<double>((7 * i) % 11) - 0.4);
  std::vector<LoopGraph> graphs{{"a loop", recurrent(dtype, false, false), arguments},
                                {"a loop in reverse", recurrent(dtype, true, false), arguments},
                                {"a gradient of a loop", recurrent(dtype, false, true), arguments},
                                {"a gradient of a loop in reverse", recurrent(dtype, true, true), arguments},
                                {"nested loops", nested(dtype), arguments},
                                {"counted loops", counted(dtype), arguments},
                                {"linear recurrences", linear(dtype), arguments}};
  for (LoopGraph& each : graphs)
    for (const char* name : {"h", "w"})
      if (!each.graph.find_argument(name).valid()) each.arguments.erase(name);
  return graphs;
}

}  // namespace lathe::test
