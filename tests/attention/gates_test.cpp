#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/models/loss_graph.h"
#include "frontend/ops/ops.h"
#include "frontend/train/training.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_attention.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "tests/attention/attention_search.h"
#include "tests/support/graphs/small_models.h"

/// Gates: exponentials between matmuls that are not attention, because no row sums them.
using namespace lathe;
using namespace lathe::test;
using Catch::Contains;

namespace {

/// Runs the search with the rules of CPUs (ignoring cost) and of GPUs.
std::vector<AttentionSearch> searches(const ir::Graph& graph) {
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  std::vector<AttentionSearch> found;
  for (const AttentionSearchOptions& options :
       {AttentionSearchOptions{.sums = OuterReductions::f32_and_f64,
                               .delta = AttentionDelta{.block_bytes = unnamed_cpu().l2.share()}},
        AttentionSearchOptions{.sums = OuterReductions::f32_and_f64,
                               .costs = AttentionCostModel{unnamed_cpu()},
                               .delta = AttentionDelta{.block_bytes = unnamed_cpu().l2.share()}},
        AttentionSearchOptions{.sums = OuterReductions::all}})
    found.push_back(find_attention(recompute_attention(prepare_for_fusion(passed), options), options));
  return found;
}

using Gate = std::function<Tensor(const Tensor& x, const Tensor& gate, const Tensor& up)>;

/// x [B, T, d] -> gate and up [B, T, 64] -> [B, T, d], with the gradients of all weights and of x.
ir::Graph feed_forward(const Gate& weigh, const Dim& tokens = Dim{"T"}) {
  Graph g{"gates"};
  const Dim B{"B"}, d{"d", 16}, wide{"wide", 64};
  const Tensor x = g.input("x", f32, {B, tokens, d});
  const Tensor a = g.parameter("a", f32, {wide, d}), b = g.parameter("b", f32, {wide, d}),
               c = g.parameter("c", f32, {d, wide});
  const Tensor y = linear(weigh(x, linear(x, a), linear(x, b)), c);
  g.output("y", y);
  const auto gradients = grad((y * y).sum(), {x, a, b, c});
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

Tensor swiglu(const Tensor&, const Tensor& gate, const Tensor& up) { return silu(gate) * up; }

/// Returns the attentions that a GPU runs, one per line.
std::string attentions(const ir::Graph& step) {
  std::string text;
  const std::vector<AttentionSearch> found = searches(step);
  for (const AttentionGroup& group : found.back().groups)
    text += group.domain.to_string() + (group.consumers.size() > 1 ? " gradient\n" : "\n");
  return text;
}

}  // namespace

TEST_CASE("a gate is not attention, forward or backward, with known and unknown sizes") {
  const std::vector<std::pair<const char*, Gate>> gates = {
      {"SwiGLU", swiglu},
      {"sigmoid", [](const Tensor&, const Tensor& gate, const Tensor& up) { return sigmoid(gate) * up; }},
      {"exp", [](const Tensor&, const Tensor& gate, const Tensor& up) { return exp(gate) * up; }},
      {"erf", [](const Tensor&, const Tensor& gate, const Tensor& up) { return gelu(gate) * up; }},
      {"normalised by its mean square",
       [](const Tensor& x, const Tensor& gate, const Tensor& up) { return rms_norm(swiglu(x, gate, up)); }},
      {"with the largest taken away, which is no sum",
       [](const Tensor&, const Tensor& gate, const Tensor& up) { return exp(gate - gate.max(-1, true)) * up; }},
      {"weighed by a softmax of other scores, as experts are",
       [](const Tensor& x, const Tensor& gate, const Tensor& up) {
         return swiglu(x, gate, up) * x.softmax(-1).slice(2, 1, 2);
       }},
  };
  for (const auto& [name, gate] : gates)
    for (const Dim& tokens : {Dim{"T"}, Dim{"T", 24}})
      for (const AttentionSearch& search : searches(feed_forward(gate, tokens))) {
        INFO(name << ", " << tokens.to_string());
        CHECK(search.groups.empty());
      }
}

TEST_CASE("weights without a softmax are not attention") {
  Graph g{"weights"};
  const Dim N{"N"}, S{"S"}, d{"d", 8};
  const Tensor q = g.input("q", f32, {N, S, d}), k = g.input("k", f32, {N, S, d}), v = g.input("v", f32, {N, S, d});
  const Tensor y = matmul(sigmoid(matmul(q, k.transpose(-2, -1))), v);
  g.output("y", y);
  const auto gradients = grad((y * y).sum(), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) g.output("grad" + std::to_string(i), gradients[i]);
  for (const AttentionSearch& search : searches(g.finish())) {
    CHECK(search.groups.empty());
    CHECK(search.gates.size() == 1);
  }
}

TEST_CASE("explain reports exponentials that are not part of attention, and why") {
  const ir::Graph graph = ir::run_pipeline(feed_forward(swiglu), ir::default_pipeline()).graph;
  for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))})
    CHECK_THAT(explain_attention(lower_graph(graph, machine), machine.info),
               Contains("this graph has no softmax\nexponentials at ") && Contains("gates_test.cpp:") &&
                   Contains(": no attention\n  no row is divided by its sum, unlike in a softmax"));
}

TEST_CASE("training steps on a GPU contain only the attention ops of the model") {
  for (const DType precision : {f32, bf16}) {
    const auto step = [&](const models::LossGraph& forward) {
      return training_step(forward.graph, "loss", AdamW{}, {.precision = precision});
    };
    const auto times = [](int n, const std::string& line) {
      std::string text;
      for (int i = 0; i < n; ++i) text += line;
      return text;
    };
    CHECK(attentions(step(models::loss_graph(small_llama()))) ==
          times(2, "[B, h=4, T, T]\n") + times(2, "[B, h=4, T, T] gradient\n"));
    CHECK(attentions(step(models::loss_graph(small_gpt()))) ==
          times(2, "[B, h=3, T, T]\n") + times(2, "[B, h=3, T, T] gradient\n"));
    const std::string encoder = "[B, h=2, S, S]\n", encoder_gradient = "[B, h=2, S, S] gradient\n";
    const std::string decoder = "[B, h=2, T, T]\n[B, h=2, T, S]\n";
    const std::string decoder_gradient = "[B, h=2, T, S] gradient\n[B, h=2, T, T] gradient\n";
    CHECK(attentions(step(models::loss_graph(small_encoder_decoder()))) ==
          times(2, encoder) + times(2, decoder) + times(2, decoder_gradient) + times(2, encoder_gradient));
  }
}

TEST_CASE("explain names no gradient of an attention in a graph without one") {
  const auto with_gradients = [](const auto& loss) {
    Graph g{"losses"};
    const Dim B{"B"}, T{"T", 32}, d{"d", 16}, classes{"classes", 100};
    const Tensor x = g.input("x", f32, {B, T, d}), w = g.parameter("w", f32, {classes, d});
    const Tensor result = loss(g, x, w);
    g.output("loss", result);
    const auto gradients = grad(result, {x, w});
    for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
    return g.finish();
  };
  const std::vector<ir::Graph> graphs = {
      feed_forward(swiglu),
      with_gradients([](Graph& g, const Tensor& x, const Tensor& w) {
        return cross_entropy(linear(x, w), g.input("targets", i64, {x.size(0), x.size(1)}));
      }),
      // Two softmaxes of one matrix of scores, as in a contrastive loss.
      with_gradients([](Graph&, const Tensor& x, const Tensor& w) {
        const Tensor scores = linear(x, w);
        return -(log_softmax(scores, -1) + log_softmax(scores, 1)).mean();
      }),
  };
  for (const ir::Graph& graph : graphs)
    for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))}) {
      const Lowered lowered = lower_graph(ir::run_pipeline(graph, ir::default_pipeline()).graph, machine);
      CHECK_THAT(explain_fusion(lowered, machine.info), !Contains("of an attention"));
    }
}
