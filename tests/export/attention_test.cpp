#include <catch2/catch.hpp>
#include <functional>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"
#include "models/import/onnx/onnx_model.h"
#include "passes/transforms/dce.h"
#include "runtime/files/file_io.h"
#include "tests/export/support/export_case.h"
#include "tests/support/tensors/distance.h"

using namespace lathe;
using namespace lathe::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// The number of nodes of an op in the export of a graph at opset 23. Checks that its import has the same values.
int nodes_of(std::string_view op, const ir::Graph& graph) {
  const std::filesystem::path path = exported(graph, {}, {.opset = 23});
  Tensors inputs;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    HostTensor value(node.type.dtype, node.type.shape.evaluate({{"B", 2}, {"T", 4}, {"S", 3}}));
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, std::sin(static_cast<double>(3 * i)));
    inputs.set(node.name, value);
  }
  const ir::Graph imported = ir::dce(importing::import_graph(path).graph.finish());
  CHECK(ir::test::distance(ir::interpret(imported, inputs).at("y"), ir::interpret(graph, inputs).at("y")) <= 2e-6);
  const std::string bytes = read_file(path, 1 << 20);
  const onnx::ModelProto model = onnx::read_model(std::as_bytes(std::span(bytes)), "model.onnx");
  return static_cast<int>(
      std::ranges::count_if(model.graph->nodes, [&](const onnx::NodeProto& node) { return node.op == op; }));
}

using Masked = std::function<Tensor(Graph&, const Tensor& scores)>;

/// An attention in steps: q [B, 2, T, 8], k and v [B, 2, S, 8].
ir::Graph in_steps(const Masked& masked, const Dim& keys, DType dtype = f32, double scale = 0.5) {
  Graph g("steps");
  const Shape shape{Dim("B"), 2, keys, 8};
  const Tensor q = g.input("q", dtype, {Dim("B"), 2, Dim("T"), 8}), k = g.input("k", dtype, shape),
               v = g.input("v", dtype, shape);
  const Tensor scores = masked(g, matmul(q, k.transpose(2, 3)) * scale);
  g.output("y", matmul(softmax(scores, -1), v));
  return g.finish();
}

Tensor later_keys(Graph& g) {
  return ~(g.arange(Dim("T"), i64).unsqueeze(0) <= g.arange(Dim("T"), i64).unsqueeze(1));
}

}  // namespace

TEST_CASE("attention: attentions in steps are one node") {
  const Dim T("T"), S("S");
  CHECK(nodes_of("Attention", in_steps([](Graph&, const Tensor& scores) { return scores; }, S)) == 1);
  CHECK(nodes_of("Attention",
                 in_steps([](Graph& g, const Tensor& scores) { return masked_fill(scores, later_keys(g), -inf); },
                          T)) == 1);
  CHECK(nodes_of("Attention",
                 in_steps([&](Graph& g, const Tensor& scores) { return scores + g.input("bias", f32, {2, T, S}); },
                          S)) == 1);
  CHECK(nodes_of("Attention",
                 in_steps([&](Graph& g,
                              const Tensor& scores) { return scores + g.input("bias", f32, {Dim("B"), 1, 1, S}); },
                          S)) == 1);
}

TEST_CASE("attention: other attentions stay in steps") {
  const Dim T("T"), S("S");
  const Masked none = [](Graph&, const Tensor& scores) { return scores; };
  CHECK(nodes_of("Attention", in_steps(none, S, f64)) == 0);
  // Finite fills, masks that are not causal, and those that may hide all keys.
  CHECK(nodes_of("Attention",
                 in_steps([](Graph& g, const Tensor& scores) { return masked_fill(scores, later_keys(g), -1e9); },
                          T)) == 0);
  CHECK(nodes_of("Attention",
                 in_steps([](Graph& g, const Tensor& scores) { return masked_fill(scores, ~later_keys(g), -inf); },
                          T)) == 0);
  CHECK(nodes_of("Attention", in_steps(
                                  [&](Graph& g, const Tensor& scores) {
                                    return masked_fill(scores, g.input("hidden", f32, {Dim("B"), 1, 1, S}) > 2.0,
                                                       -inf);
                                  },
                                  S)) == 0);
  CHECK(nodes_of("Attention", in_steps([](Graph&, const Tensor& scores) { return tanh(scores); }, S)) == 0);
  Graph g("other");
  const Tensor q = g.input("q", f32, {2, 2, 4, 4});
  g.output("y", matmul(softmax(matmul(q, q.transpose(2, 3)), 2), q));
  CHECK(nodes_of("Attention", g.finish()) == 0);
  Graph h("plain");
  const Tensor x = h.input("x", f32, {2, 2, 4, 4});
  h.output("y", matmul(softmax(matmul(x, x), 3), x));
  CHECK(nodes_of("Attention", h.finish()) == 0);
}

TEST_CASE("attention: rotary embeddings by tables of two equal halves are one node") {
  const Dim B("B"), T("T");
  const auto rotated = [&](bool is_equal, const Shape& shape, DType dtype) {
    Graph g("rotated");
    const Tensor angle = g.input("angle", dtype, {T, 4});
    const Tensor table = concat({angle, is_equal ? angle : angle * 2.0}, 1);
    g.output("y", rope(g.input("x", dtype, shape), cos(table), sin(table)));
    return nodes_of("RotaryEmbedding", g.finish());
  };
  CHECK(rotated(true, {B, 2, T, 8}, f32) == 1);
  CHECK(rotated(false, {B, 2, T, 8}, f32) == 0);
  CHECK(rotated(true, {B, 2, T, 8}, f64) == 0);
  CHECK(rotated(true, {B, T, 8}, f32) == 0);
}
