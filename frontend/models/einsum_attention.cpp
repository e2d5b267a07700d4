#include <cmath>

#include "frontend/models/attentions.h"
#include "frontend/nn/linear.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

void einsum_attention(Graph& g, const EinsumAttentionConfig& config) {
  const Dim N{"N"}, q_len{"q"}, k_len{"k"};
  const Dim &embed = config.embed, &heads = config.heads;
  const Dim head_dim{"head_dim", embed / heads};

  const Tensor query = g.input("query", config.dtype, {N, q_len, embed});
  const Tensor key = g.input("key", config.dtype, {N, k_len, embed});
  const Tensor value = g.input("value", config.dtype, {N, k_len, embed});
  const Tensor mask = g.input("mask", i64, {N, 1, 1, k_len});
  const nn::Module root(g, config.dtype);
  const nn::Linear W_q(root, "W_q", embed, embed), W_k(root, "W_k", embed, embed), W_v(root, "W_v", embed, embed),
      fc(root, "fc", embed, embed);

  const Tensor Q = W_q(query).reshape({N, q_len, heads, head_dim});
  const Tensor K = W_k(key).reshape({N, k_len, heads, head_dim});
  const Tensor V = W_v(value).reshape({N, k_len, heads, head_dim});
  const Tensor scores = einsum("nqhd,nkhd->nhqk", {Q, K}).named("scores");  // [N, heads, q, k]
  const double scale = std::sqrt(static_cast<double>(head_dim.number()));

  for (const auto& [name, fill] : {std::pair{"out", -1e-20}, std::pair{"masked_1e20", -1e20}}) {
    const Tensor weights = softmax(scores.masked_fill(mask == 0, fill) / scale, 3);  // [N, heads, q, k]
    const Tensor heads_out = einsum("nhqk,nkhd->nqhd", {weights, V});                // [N, q, heads, head_dim]
    g.output(name, fc(heads_out.reshape({N, q_len, embed})));                        // [N, q, embed]
  }
}

}  // namespace lathe::models
