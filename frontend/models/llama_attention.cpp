#include <cmath>
#include <limits>

#include "frontend/models/attentions.h"
#include "frontend/nn/attention/attention.h"
#include "frontend/nn/attention/positions.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

Tensor llama_attention(Graph& g, const LlamaAttentionConfig& config) {
  const Dim B{"B"}, S{"S"};
  const Dim &hidden = config.hidden, &H = config.H, &KV = config.KV;
  const Dim D{"D", hidden / H}, groups{"groups", H / KV};

  const Tensor x = g.input("hidden_states", config.dtype, {B, S, hidden});
  const Tensor positions = g.input("position_ids", i64, {B, S});
  const Tensor Wq = g.parameter("q_proj", config.dtype, {H * D, hidden});
  const Tensor Wk = g.parameter("k_proj", config.dtype, {KV * D, hidden});
  const Tensor Wv = g.parameter("v_proj", config.dtype, {KV * D, hidden});
  const Tensor Wo = g.parameter("o_proj", config.dtype, {hidden, H * D});

  const Tensor q = linear(x, Wq).view({B, S, H, D}).transpose(1, 2).named("q");   // [B, H, S, D]
  const Tensor k = linear(x, Wk).view({B, S, KV, D}).transpose(1, 2).named("k");  // [B, KV, S, D]
  const Tensor v = linear(x, Wv).view({B, S, KV, D}).transpose(1, 2).named("v");  // [B, KV, S, D]

  const Tensor phases = nn::rotary_phases(g, positions, D, config.dtype, config.theta);  // complex [B, 1, S, D/2]
  const Tensor q_rope = nn::rotate_pairs(q, phases).named("q_rope");                     // [B, H, S, D]
  const Tensor k_rope = nn::rotate_pairs(k, phases).named("k_rope");                     // [B, KV, S, D]
  const Tensor q_norm = rms_norm(q_rope, config.norm_eps).named("q_norm");
  const Tensor k_norm = rms_norm(k_rope, config.norm_eps).named("k_norm");

  const Tensor keys = nn::repeat_heads(k_norm, groups).named("k_repeated");  // [B, H, S, D]
  const Tensor values = nn::repeat_heads(v, groups).named("v_repeated");     // [B, H, S, D]

  const Tensor never = g.full({S, S}, -std::numeric_limits<double>::infinity(), config.dtype);
  const Tensor mask = where(g.causal_mask(S, S), 0, never);  // [S, S]
  const Tensor scores = matmul(q_norm, keys.transpose(2, 3)) * (1 / std::sqrt(static_cast<double>(D.number())));
  const Tensor weights = (scores + mask).softmax(-1).named("weights");  // [B, H, S, S]
  const Tensor kept = nn::Dropout(config.dropout)(weights);
  const Tensor attended = matmul(kept, values).named("attn_output");                  // [B, H, S, D]
  const Tensor final = linear(nn::merge_heads(attended, hidden), Wo).named("final");  // [B, S, hidden]
  g.output("final", final);
  return final;
}

}  // namespace lathe::models
