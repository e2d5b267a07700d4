#include <cmath>

#include "frontend/models/attentions.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

Tensor attention_walkthrough(Graph& g, const WalkthroughConfig& config) {
  const Dim B{"nbatches"}, S{"n_seq"};
  const Dim &d_model = config.d_model, &h = config.h;
  const Dim d_k{"d_k", d_model / h};

  const Tensor token_ids = g.input("token_ids", i64, {B, S});
  const Tensor table =
      g.parameter("embedding", config.dtype, {config.vocab, d_model}, Init::normal({.deviation = 1}));
  const Tensor W_q = g.parameter("W_q", config.dtype, {d_model, d_model});
  const Tensor W_k = g.parameter("W_k", config.dtype, {d_model, d_model});
  const Tensor W_v = g.parameter("W_v", config.dtype, {d_model, d_model});
  const Tensor W_o = g.parameter("W_o", config.dtype, {d_model, d_model});

  const Tensor x = embedding(token_ids, table).named("x");
  const Tensor src_mask = (token_ids != config.pad).to(i64).unsqueeze(1).unsqueeze(2).named("src_mask");

  const Tensor Q = linear(x, W_q).named("Q");
  const Tensor K = linear(x, W_k).named("K");
  const Tensor V = linear(x, W_v).named("V");

  const Tensor Q_heads = Q.view({B, S, h, d_k}).named("Q_reshaped").transpose(1, 2).named("Q_heads");
  const Tensor K_heads = K.view({B, S, h, d_k}).transpose(1, 2).named("K_heads");
  const Tensor V_heads = V.view({B, S, h, d_k}).transpose(1, 2).named("V_heads");

  const Tensor K_T = K_heads.transpose(-2, -1).named("K_T");
  const Tensor scores = matmul(Q_heads, K_T).named("scores");
  const Tensor scaled = (scores / std::sqrt(static_cast<double>(d_k.number()))).named("scores_scaled");
  const Tensor masked = scaled.masked_fill(src_mask == 0, config.fill).named("scores_masked");
  const Tensor weights = masked.softmax(-1).named("weights");

  const Tensor attended = matmul(weights, V_heads).named("attention_output");
  const Tensor transposed = attended.transpose(1, 2).named("attention_transposed");
  const Tensor concat = transposed.contiguous().view({B, S, d_model}).named("attention_concat");
  const Tensor final = linear(concat, W_o).named("final");
  g.output("final", final);
  return final;
}

}  // namespace lathe::models
