// Llama 2 and 3 (Touvron et al. 2023), Mistral, Qwen2, Qwen3: norms before each sublayer, rotary embedding,
// grouped-query heads, a gated feed-forward.
#include <fmt/core.h>

#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions llama_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("rms_norm_eps", 1e-6)};
}

nn::SelfAttentionOptions llama_attention(const Config& config, int layer) {
  nn::SelfAttentionOptions options = attention_options(config);
  const std::string family = config.text("model_type");
  options.bias = family == "qwen2" || config.boolean("attention_bias", false);
  options.o_bias = family != "qwen2" && config.boolean("attention_bias", false);
  options.norm = family == "qwen3" ? nn::QueryNorm::head : nn::QueryNorm::none;
  options.norm_options = llama_norm(config);
  options.attention.window = window_of(config, layer);
  return options;
}

struct LlamaLayer : nn::Module {
  LlamaLayer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("model.layers.{}", i), "LlamaLayer"),
        self_attn(*this, "self_attn", llama_attention(config, i)),
        mlp(*this, "mlp", size(config, "hidden_size", "hidden"), size(config, "intermediate_size", "d_ff"),
            {.dtype = stored_dtype(config),
             .activation = activation(config, "hidden_act"),
             .bias = config.boolean("mlp_bias", false)}),
        input_norm(*this, "input_layernorm", size(config, "hidden_size", "hidden"), llama_norm(config)),
        post_norm(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), llama_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + self_attn(input_norm(x), call.context, call.tables[0]);
    return y + mlp(post_norm(y));
  }

  nn::SelfAttention self_attn;
  nn::GatedFeedForward mlp;
  nn::RmsNorm input_norm, post_norm;
};

}  // namespace

const KeyTable& llama_keys() {
  static const KeyTable table(
      {base_keys(), decoder_keys("10000.0", "2048"), {used("attention_bias"), used("mlp_bias")}});
  return table;
}

const KeyTable& mistral_keys() {
  static const KeyTable table(
      {base_keys(),
       decoder_keys("10000.0", "131072"),
       {used("num_key_value_heads", "8"), used("sliding_window", "4096"),
        refused("layer_types", {},
                "a Mistral has one kind of layer; a model with several is a Ministral, which Lathe does not read")}});
  return table;
}

const KeyTable& qwen2_keys() {
  static const KeyTable table(
      {base_keys(),
       decoder_keys("10000.0", "32768"),
       {used("num_key_value_heads", "32"), used("use_sliding_window"), used("sliding_window", "4096"),
        used("max_window_layers", "28"), used("layer_types")}});
  return table;
}

const KeyTable& qwen3_keys() {
  static const KeyTable table({qwen2_keys().rules(), {used("head_dim", "128"), used("attention_bias")}});
  return table;
}

std::unique_ptr<CausalLm> make_llama(const Config& config) {
  using Stack = DecoderStack<LlamaLayer, nn::RmsNorm>;
  return std::make_unique<Stack>(config, Stack::Options{.names = {"model.embed_tokens", "model.norm", "lm_head"},
                                                        .kind = "Llama",
                                                        .norm = llama_norm(config),
                                                        .ropes = {rope_options(config)},
                                                        .rotary_dim = attention_options(config).d});
}

}  // namespace lathe::pretrained
