// OLMo 2 (OLMo Team 2024): norms after each sublayer, and norms of q and k over all heads.
#include <fmt/core.h>

#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions olmo2_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("rms_norm_eps", 1e-5)};
}

nn::SelfAttentionOptions olmo2_attention(const Config& config) {
  nn::SelfAttentionOptions options = attention_options(config);
  options.bias = options.o_bias = config.boolean("attention_bias", false);
  options.norm = nn::QueryNorm::all;
  options.norm_options = olmo2_norm(config);
  return options;
}

struct Olmo2Layer : nn::Module {
  Olmo2Layer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("model.layers.{}", i), "Olmo2Layer"),
        self_attn(*this, "self_attn", olmo2_attention(config)),
        mlp(*this, "mlp", size(config, "hidden_size", "hidden"), size(config, "intermediate_size", "d_ff"),
            {.dtype = stored_dtype(config), .activation = activation(config, "hidden_act")}),
        post_attention(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), olmo2_norm(config)),
        post_feedforward(*this, "post_feedforward_layernorm", size(config, "hidden_size", "hidden"),
                         olmo2_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + post_attention(self_attn(x, call.context, call.tables[0]));
    return y + post_feedforward(mlp(y));
  }

  nn::SelfAttention self_attn;
  nn::GatedFeedForward mlp;
  nn::RmsNorm post_attention, post_feedforward;
};

}  // namespace

const KeyTable& olmo2_keys() {
  static const KeyTable table(
      {base_keys(), decoder_keys("10000.0", "2048"), {used("rms_norm_eps", "1e-05"), used("attention_bias")}});
  return table;
}

std::unique_ptr<CausalLm> make_olmo2(const Config& config) {
  using Stack = DecoderStack<Olmo2Layer, nn::RmsNorm>;
  return std::make_unique<Stack>(config, Stack::Options{.names = {"model.embed_tokens", "model.norm", "lm_head"},
                                                        .kind = "Olmo2",
                                                        .norm = olmo2_norm(config),
                                                        .ropes = {rope_options(config)},
                                                        .rotary_dim = attention_options(config).d});
}

}  // namespace lathe::pretrained
