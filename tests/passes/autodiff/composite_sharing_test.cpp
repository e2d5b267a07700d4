#include <algorithm>

#include <catch2/catch.hpp>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"

/// The gradient rules of composites build the same ops as the forward pass, so that they become one node when
/// expanded.
namespace lathe::ir {

namespace {

/// Returns forward and gradients of `loss`, expanded to primitives.
Graph expanded_training_graph(GraphBuilder& builder, const Value& loss) {
  builder.output("loss", loss);
  GradientRequest request;
  request.outputs = {{"loss", ""}};
  return dce(expand(differentiate(builder.finish(), request)));
}

int count(const Graph& graph, const Op& op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == &op; }));
}

}  // namespace

TEST_CASE("norms compute mean and rstd once for forward and gradient", "[gradients]") {
  GraphBuilder b("g");
  const Dim n{"n_seq"}, d{"d_model", 8};
  const Value x = b.argument(ops::parameter, "x", f32, {n, d}), w = b.argument(ops::parameter, "w", f32, {d});
  const Value s = b.argument(ops::parameter, "s", f32, {d});
  SECTION("layer_norm") {
    const Graph graph = expanded_training_graph(b, sum(square(layer_norm(x, w, s))));
    CHECK(count(graph, ops::rsqrt) == 1);
  }
  SECTION("rms_norm") {
    const Graph graph = expanded_training_graph(b, sum(add(square(rms_norm(x, w)), s)));
    CHECK(count(graph, ops::rsqrt) == 1);
  }
}

TEST_CASE("the loss computes maximum, exponentials and their sum once", "[gradients]") {
  GraphBuilder b("g");
  const Dim n{"n"}, vocab{"vocab", 11};
  const Value logits = b.argument(ops::parameter, "logits", f32, {n, vocab});
  const Value targets = b.argument(ops::input, "targets", i64, {n});
  const Graph graph = expanded_training_graph(b, cross_entropy(logits, targets, 0, 0.1));
  CHECK(count(graph, ops::exp) == 1);
  CHECK(count(graph, ops::max) == 2);  // of the row, and of the target
  CHECK(count(graph, ops::log) == 1);
  CHECK(count(graph, ops::gather) == 1);  // the bounds check of the targets
}

TEST_CASE("dropout draws once, softmax is not recomputed", "[gradients]") {
  GraphBuilder b("g");
  const Dim n{"n"};
  const Value scores = b.argument(ops::parameter, "scores", f32, {n, n});
  const Value random = b.argument(ops::state, "random", i64, {2});
  const Graph graph = expanded_training_graph(b, sum(square(dropout(softmax(scores, -1), random, 0.1))));
  CHECK(count(graph, ops::random_uniform) == 1);
  CHECK(count(graph, ops::exp) == 1);
}

}  // namespace lathe::ir
