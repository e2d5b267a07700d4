// Gemma 2 and Gemma 3 (text): norms before and after each sublayer, which multiply by 1 + w; embeddings times the
// root of the width; layers with and without a window. Gemma 2 caps scores; Gemma 3 norms q and k and has two rotary
// bases.
#include <cmath>

#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/config/rope_options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

/// The options that both share, except for the windows.
CausalLmOptions describe_gemma(const Config& config, std::string_view kind) {
  CausalLmOptions options = decoder_options(config, kind, {.activation = "hidden_activation"});
  options.norm.unit_offset = true;
  options.embedding_multiplier = std::sqrt(config.real("hidden_size"));
  options.logits_cap = config.real("final_logit_softcapping", 0);
  for (TransformerLayerOptions& layer : options.layers) {
    layer.norm = options.norm;
    layer.attention.attention.scale = 1 / std::sqrt(config.real("query_pre_attn_scalar"));
    layer.attention_output_norm = "post_attention_layernorm";
    layer.feed_forward_norm = "pre_feedforward_layernorm";
    layer.feed_forward_output_norm = "post_feedforward_layernorm";
  }
  return options;
}

/// Files without layer_types have a window in every second layer.
CausalLmOptions describe_gemma2(const Config& config) {
  CausalLmOptions options = describe_gemma(config, "Gemma2");
  for (std::size_t i = 0; i < options.layers.size(); ++i) {
    options.layers[i].attention.attention.window = window_of(config, i, i % 2 == 1);
    options.layers[i].attention.attention.soft_cap = config.real("attn_logit_softcapping", 0);
  }
  return options;
}

/// Files without layer_types have a full layer after every 5 with a window, or as sliding_window_pattern says.
CausalLmOptions describe_gemma3(const Config& config) {
  CausalLmOptions options = describe_gemma(config, "Gemma3");
  options.ropes = {rope_options(config, "full_attention"), rope_options(config, "sliding_attention")};
  const std::int64_t pattern = config.integer("sliding_window_pattern", 6);
  if (pattern < 1) config.reject("sliding_window_pattern", "it must be 1 or more");
  for (std::size_t i = 0; i < options.layers.size(); ++i) {
    TransformerLayerOptions& layer = options.layers[i];
    layer.attention.norm = nn::QueryNorm::head;
    layer.attention.norm_options = layer.norm;
    layer.attention.attention.window = window_of(config, i, (i + 1) % static_cast<std::size_t>(pattern) == 0);
    layer.rope = layer.attention.attention.window ? 1 : 0;
  }
  return options;
}

/// The keys that both share.
KeyTable gemma_keys(std::string_view theta, std::string_view max_length) {
  return KeyTable(
      {base_keys(),
       decoder_keys(theta, max_length),
       {used("num_key_value_heads", "4"), used("head_dim", "256"), used("hidden_activation", "\"gelu_pytorch_tanh\""),
        harmless("hidden_act", "the library reads hidden_activation"), used("tie_word_embeddings", "true"),
        used("attention_bias"), used("query_pre_attn_scalar", "256"), used("sliding_window", "4096"),
        used("layer_types"),
        refused("use_bidirectional_attention", "[false]",
                "its tokens see those after them, so that it is no causal language model")}});
}

}  // namespace

Family gemma2() {
  return {.model_types = {"gemma2"},
          .keys = KeyTable({gemma_keys("10000.0", "8192").rules(),
                            {used("attn_logit_softcapping", "50.0"), used("final_logit_softcapping", "30.0")}}),
          .make = describe_gemma2};
}

Family gemma3() {
  return {
      .model_types = {"gemma3_text"},
      .keys = KeyTable(
          {gemma_keys("1000000.0", "131072").rules(),
           {used("rope_local_base_freq", "10000.0"), used("sliding_window_pattern"), used("final_logit_softcapping"),
            harmless("_sliding_window_pattern", "the library reads layer_types or sliding_window_pattern"),
            harmless("attn_logit_softcapping", "the library's Gemma 3 keeps the value and does not apply it")}}),
      .make = describe_gemma3,
      .has_ropes_by_layer = true};
}

}  // namespace lathe::pretrained::families
