// GPT-NeoX (Black et al. 2022): layer norms with biases, q, k and v interleaved per head, rotary embedding of a part
// of each head, attention and feed-forward in parallel.
#include <fmt/core.h>

#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions gpt_neox_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("layer_norm_eps", 1e-5)};
}

nn::SelfAttentionOptions gpt_neox_attention(const Config& config) {
  nn::SelfAttentionOptions options = attention_options(config);
  options.projections = nn::Projections::interleaved;
  options.stacked_name = "query_key_value";
  options.o_name = "dense";
  options.bias = options.o_bias = config.boolean("attention_bias", true);
  return options;
}

struct GptNeoxLayer : nn::Module {
  GptNeoxLayer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("gpt_neox.layers.{}", i), "GptNeoXLayer"),
        is_parallel(config.boolean("use_parallel_residual", true)),
        attention_layer(*this, "attention", gpt_neox_attention(config)),
        mlp(*this, "mlp", size(config, "hidden_size", "hidden"), size(config, "intermediate_size", "d_ff"),
            {.dtype = stored_dtype(config),
             .activation = activation(config, "hidden_act"),
             .up = "dense_h_to_4h",
             .down = "dense_4h_to_h"}),
        input_norm(*this, "input_layernorm", size(config, "hidden_size", "hidden"), gpt_neox_norm(config)),
        post_norm(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), gpt_neox_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + attention_layer(input_norm(x), call.context, call.tables[0]);
    return y + mlp(post_norm(is_parallel ? x : y));
  }

  bool is_parallel;
  nn::SelfAttention attention_layer;
  nn::FeedForward mlp;
  nn::LayerNorm input_norm, post_norm;
};

}  // namespace

const KeyTable& gpt_neox_keys() {
  static const KeyTable table({base_keys(),
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
  return table;
}

std::unique_ptr<CausalLm> make_gpt_neox(const Config& config) {
  using Stack = DecoderStack<GptNeoxLayer, nn::LayerNorm>;
  return std::make_unique<Stack>(
      config, Stack::Options{.names = {"gpt_neox.embed_in", "gpt_neox.final_layer_norm", "embed_out"},
                             .kind = "GptNeoX",
                             .norm = gpt_neox_norm(config),
                             .ropes = {rope_options(config)},
                             .rotary_dim = rotary_dim(config)});
}

}  // namespace lathe::pretrained
