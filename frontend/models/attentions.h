#pragma once

#include "frontend/graph.h"

/// Attention in the variants found in common sources. Each is a function that declares its inputs and parameters in
/// `g`, names its intermediates and declares its outputs. The examples run and check them.
namespace lathe::models {

struct WalkthroughConfig {
  Dim vocab{"vocab", 7}, d_model{"d_model", 8}, h{"h", 2};
  std::int64_t pad = 0;
  double fill = -1e9;
  DType dtype = f32;
};
/// Adds multi-head attention step by step: embedding of token_ids i64 [nbatches, n_seq], padding mask, heads, scores
/// and weights. Output: "final" [nbatches, n_seq, d_model].
Tensor attention_walkthrough(Graph& g, const WalkthroughConfig& config = {});

struct LlamaAttentionConfig {
  Dim hidden{"hidden", 128}, H{"H", 16}, KV{"KV", 4};
  double theta = 10000, norm_eps = 1e-6;
  double dropout = 0;  ///< of the attention weights
  DType dtype = f32;
};
/// Adds grouped-query attention with rotary embedding as complex multiplication, RMS norm of q and k after it, and an
/// additive causal mask of -inf: hidden_states [B, S, hidden], position_ids i64 [B, S] -> "final" [B, S, hidden].
Tensor llama_attention(Graph& g, const LlamaAttentionConfig& config = {});

struct EinsumAttentionConfig {
  Dim embed{"embed", 32}, heads{"heads", 4};
  DType dtype = f32;
};
/// Adds attention by einsum in [N, length, heads, head_dim] layout: query [N, q, embed], key and value [N, k, embed],
/// mask i64 [N, 1, 1, k]. Output "out" fills masked scores with -1e-20, which masks nothing; "masked_1e20" fills them
/// with -1e20.
void einsum_attention(Graph& g, const EinsumAttentionConfig& config = {});

struct AttentionFormsConfig {
  Dim d{"d", 8}, h{"h", 2}, d_self{"d_self", 4};
  DType dtype = f32;
};
/// Adds four variants: "self" (2-D), "multi_head" with a weight matrix per head, "causal", and "cross" with the same
/// causal mask. Inputs Q, K, V [n, d_self], x [n, d], encoder_input and decoder_input [1, n, d].
void attention_forms(Graph& g, const AttentionFormsConfig& config = {});

}  // namespace lathe::models
