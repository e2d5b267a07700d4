#include <lathe/lathe.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace lathe;

const Dim B{"B"}, S{"S"}, h{"h", 4}, d_k{"d_k", 16};

/// Attention written as separate ops.
ir::Graph attention_graph() {
  Graph g{"attention"};
  const Tensor q = g.input("q", f32, {B, h, S, d_k});
  const Tensor k = g.input("k", f32, {B, h, S, d_k});
  const Tensor v = g.input("v", f32, {B, h, S, d_k});
  const Tensor scores = matmul(q, k.transpose(-2, -1)) / std::sqrt(d_k.number());
  const Tensor weights = softmax(masked_fill(scores, ~g.causal_mask(S, S), -1e9), -1);
  g.output("y", matmul(weights, v));
  return g.finish();
}

HostTensor waves(double speed) {
  HostTensor tensor(f32, {2, 4, 100, 16});
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, std::sin(speed * static_cast<double>(i)));
  return tensor;
}

int main() {
  Executable fused = compile(attention_graph(), {.lower = {.attention = AttentionFusion::required}});
  Executable apart = compile(attention_graph(), {.lower = {.attention = AttentionFusion::off}});
  std::printf("kernels in a run: %d fused, %d apart\n", fused.summary().launches, apart.summary().launches);

  const Tensors inputs{{"q", waves(0.1)}, {"k", waves(0.2)}, {"v", waves(0.3)}};
  const HostTensor a = fused.run(inputs).at("y"), b = apart.run(inputs).at("y");
  double largest = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) largest = std::max(largest, std::abs(a.get(i) - b.get(i)));
  std::printf("they agree to 1e-6: %s\n", largest < 1e-6 ? "yes" : "no");
}
