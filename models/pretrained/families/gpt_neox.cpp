// GPT-NeoX (Black et al. 2022): layer norms with biases, q, k and v interleaved per head, rotary embedding of a part
// of each head, attention and feed-forward in parallel.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/config/rope_options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

CausalLmOptions describe_gpt_neox(const Config& config) {
  CausalLmOptions options = decoder_options(config, "GptNeoX", {.norm_eps = "layer_norm_eps"});
  options.embed_name = "gpt_neox.embed_in";
  options.layer_name = "gpt_neox.layers";
  options.norm_name = "gpt_neox.final_layer_norm";
  options.head_name = "embed_out";
  options.rotary_dim = rotary_dim(config);
  for (TransformerLayerOptions& layer : options.layers) {
    layer.norm_kind = NormKind::layer;
    layer.attention_name = "attention";
    layer.attention.projections = nn::Projections::interleaved;
    layer.attention.stacked_name = "query_key_value";
    layer.attention.o_name = "dense";
    layer.feed_forward = nn::FeedForwardOptions{.dtype = options.dtype,
                                                .activation = activation(config, "hidden_act"),
                                                .up = "dense_h_to_4h",
                                                .down = "dense_4h_to_h"};
    layer.is_parallel = config.boolean("use_parallel_residual", true);
  }
  return options;
}

KeyTable gpt_neox_keys() {
  return KeyTable({base_keys(),
                   {
                       used("vocab_size"),
                       used("hidden_size"),
                       used("intermediate_size"),
                       used("num_hidden_layers"),
                       used("num_attention_heads"),
                       used("hidden_act", "\"gelu\""),
                       used("max_position_embeddings", "2048"),
                       used("layer_norm_eps", "1e-05"),
                       used("use_parallel_residual", "true"),
                       used("attention_bias", "true"),
                       used("rope_parameters"),
                       used("rope_scaling"),
                       used("rotary_emb_base", "10000"),
                       used("rotary_pct", "0.25"),
                       refused("head_dim", {}, "a head is hidden_size / num_attention_heads wide"),
                       harmless("attention_dropout", dropout_reason),
                       harmless("hidden_dropout", dropout_reason),
                       harmless("is_decoder", "a model of this family is a decoder"),
                   }});
}

}  // namespace

Family gpt_neox() {
  return {.model_types = {"gpt_neox"},
          .keys = gpt_neox_keys(),
          .make = describe_gpt_neox,
          .names = {.ignored = {"*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq"},
                    .others = {{"embed_out.weight", "lm_head.weight"}}}};
}

}  // namespace lathe::pretrained::families
