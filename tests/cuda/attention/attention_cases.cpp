#include "tests/cuda/attention/attention_cases.h"

#include <cmath>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"
#include "tests/attention/variants/variant.h"

namespace lathe::test {

namespace {

/// Outputs y and the gradients of its sum of squares.
ir::Graph with_gradients(Graph& g, const Tensor& y, const std::vector<Tensor>& by) {
  g.output("y", y);
  const auto gradients = grad((y * y).sum(), by);
  for (std::size_t i = 0; i < by.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

/// The scores are the sum of two matmuls, as with decoupled rotary embeddings.
ir::Graph two_parts() {
  Graph g{"two_parts"};
  const Dim N{"N"}, S{"S"};
  const auto input = [&](const char* name, std::int64_t depth) { return g.input(name, f32, {N, S, depth}); };
  const Tensor q = input("q", 24), k = input("k", 24), q_rope = input("q_rope", 5), k_rope = input("k_rope", 5);
  const Tensor v = input("v", 18);
  const Tensor scores = matmul(q, k.transpose(-2, -1)) + matmul(q_rope, k_rope.transpose(-2, -1));
  const Tensor y = matmul((scores * 0.2).softmax(-1), v);
  return with_gradients(g, y, {q, k, q_rope, k_rope, v});
}

/// New queries over a cache that holds a different number of keys per batch index.
ir::Graph offset_of_batches() {
  Graph g{"offset"};
  const Dim N{"N"}, S{"S"};
  const auto input = [&](const char* name, const Dim& rows) { return g.input(name, f32, {N, 2, rows, 8}); };
  const Tensor q = input("q", S), k = input("k", S + 2), v = input("v", S + 2);
  return with_gradients(g, attention(q, k, v, {}, 0.5, Causal::from(g.input("past", i64, {N}))), {q, k, v});
}

/// Two more keys than queries, as with a cache that holds two keys.
ir::Graph offset_of_size() {
  Graph g{"offset"};
  const Dim N{"N"}, S{"S"}, T = S + 2;
  const Tensor q = g.input("q", f32, {N, S, 8}), k = g.input("k", f32, {N, T, 8}), v = g.input("v", f32, {N, T, 8});
  return with_gradients(g, attention(q, k, v, {}, 0.5, Causal::from(T - S)), {q, k, v});
}

}  // namespace

ir::Graph causal_attention(DType dtype, std::int64_t head, std::int64_t values) {
  Graph g{"causal"};
  const Dim N{"N"}, S{"S"};
  const Tensor q = g.input("q", dtype, {N, S, head}), k = g.input("k", dtype, {N, S, head}),
               v = g.input("v", dtype, {N, S, values});
  const Tensor scores = matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(head));
  const Tensor y = matmul(where(g.causal_mask(S, S), scores, -1e9).softmax(-1), v);
  return with_gradients(g, y, {q, k, v});
}

ir::Graph scaled_attention(DType dtype, std::int64_t head, std::int64_t values, double scale) {
  Graph g{"scaled"};
  const Dim N{"N"}, S{"S"};
  const Tensor q = g.input("q", dtype, {N, S, head}), k = g.input("k", dtype, {N, S, head}),
               v = g.input("v", dtype, {N, S, values});
  g.output("y", matmul(matmul(q * scale, k.transpose(-2, -1)).softmax(-1), v));
  return g.finish();
}

ir::Graph masked_attention(DType dtype, double fill) {
  Graph g{"masked"};
  const Dim N{"N"}, S{"S"}, T{"T"}, head{"head", dtype == f64 ? 2 : 16};
  const Tensor q = g.input("q", dtype, {N, S, head}), k = g.input("k", dtype, {N, T, head}),
               v = g.input("v", dtype, {N, T, head}), mask = g.input("mask", boolean, {N, S, T});
  g.output("y", matmul(where(mask, matmul(q, k.transpose(-2, -1)), fill).softmax(-1), v));
  return g.finish();
}

ir::Graph zero_masked_attention(DType dtype) {
  Graph g{"zero_masked"};
  const Dim N{"N"}, S{"S"}, T{"T"}, head{"head", 16};
  const Tensor q = g.input("q", dtype, {N, S, head}), k = g.input("k", dtype, {N, T, head}),
               v = g.input("v", dtype, {N, T, head}), mask = g.input("mask", boolean, {N, S, T});
  g.output("y", attention(q, k, v, mask, 0.25, false, true));
  return g.finish();
}

std::vector<AttentionCase> attention_cases() {
  const std::pair<const char*, PatternVariant> variants[] = {
      {"plain", {}},
      {"causal", {.layout = Layout::split, .mask = Mask::causal_fill}},
      {"keys first, padding", {.layout = Layout::keys_first, .mask = Mask::padding_bool}},
      {"rows outside, window", {.layout = Layout::rows_outside, .mask = Mask::window}},
      {"heads last, ALiBi, wider values",
       {.layout = Layout::heads_last, .mask = Mask::alibi, .extra = Extra::values_wider}},
      {"grouped heads, causal with a soft cap", {.layout = Layout::grouped_einsum, .mask = Mask::soft_cap_causal}},
      {"grouped heads with draws", {.layout = Layout::grouped_expand, .extra = Extra::dropout}},
      {"bias that batches share, and its gradient", {.layout = Layout::heads, .mask = Mask::bias_shared}},
      {"bias that all share, causal", {.layout = Layout::one_key_head, .mask = Mask::bias_then_mask}},
      {"shared bias in bf16", {.layout = Layout::split, .mask = Mask::bias_shared, .types = Types::bf16}},
      {"bias with its gradient", {.layout = Layout::one_key_head, .mask = Mask::bias}},
      {"weights returned", {.layout = Layout::batched, .mask = Mask::gate, .extra = Extra::weights_returned}},
      {"minus infinity, by logsumexp",
       {.layout = Layout::heads, .mask = Mask::causal_add_inf, .normalisation = Normalisation::by_logsumexp}},
      {"soft cap, draws in f16", {.mask = Mask::soft_cap, .extra = Extra::dropout, .types = Types::f16}},
      {"minus 1e-20 masks nothing", {.layout = Layout::per_head, .mask = Mask::tiny_fill}},
      {"without the maximum", {.layout = Layout::flat, .normalisation = Normalisation::without_max}},
      {"padding in f64", {.layout = Layout::split, .mask = Mask::both_and, .types = Types::f64}},
      {"causal in bf16", {.layout = Layout::split, .mask = Mask::causal_where, .types = Types::bf16}},
      {"across, in f16", {.mask = Mask::padding_f32, .extra = Extra::cross, .types = Types::f16}},
      {"softmax in f32", {.layout = Layout::heads, .mask = Mask::causal_tril, .types = Types::f32_softmax}},
  };
  std::vector<AttentionCase> cases;
  for (const auto& [name, variant] : variants) cases.push_back({name, build(variant)});
  cases.push_back({"two parts", two_parts()});
  cases.push_back({"an offset of each batch", offset_of_batches()});
  cases.push_back({"an offset that is a size", offset_of_size()});
  return cases;
}

}  // namespace lathe::test
