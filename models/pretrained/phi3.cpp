// Phi-3 (Abdin et al. 2024): one layer for q, k and v, one for gate and up; rotary embedding of a part of each head.
#include <fmt/core.h>

#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions phi3_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("rms_norm_eps", 1e-5)};
}

nn::SelfAttentionOptions phi3_attention(const Config& config) {
  nn::SelfAttentionOptions options = attention_options(config);
  options.projections = nn::Projections::stacked;
  if (config.has("sliding_window")) options.attention.window = config.integer("sliding_window");
  return options;
}

struct Phi3Layer : nn::Module {
  Phi3Layer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("model.layers.{}", i), "Phi3Layer"),
        self_attn(*this, "self_attn", phi3_attention(config)),
        mlp(*this, "mlp", size(config, "hidden_size", "hidden"), size(config, "intermediate_size", "d_ff"),
            {.dtype = stored_dtype(config), .activation = activation(config, "hidden_act"), .stacked = true}),
        input_norm(*this, "input_layernorm", size(config, "hidden_size", "hidden"), phi3_norm(config)),
        post_norm(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), phi3_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + self_attn(input_norm(x), call.context, call.tables[0]);
    return y + mlp(post_norm(y));
  }

  nn::SelfAttention self_attn;
  nn::GatedFeedForward mlp;
  nn::RmsNorm input_norm, post_norm;
};

}  // namespace

const KeyTable& phi3_keys() {
  static const KeyTable table({base_keys(),
                               decoder_keys("10000.0", "4096"),
                               {used("rms_norm_eps", "1e-05"), used("original_max_position_embeddings", "4096"),
                                used("partial_rotary_factor"), used("sliding_window"),
                                harmless("resid_pdrop", dropout_reason), harmless("embd_pdrop", dropout_reason),
                                refused("attention_bias", "[false]", "the library's Phi-3 has no biases")}});
  return table;
}

std::unique_ptr<CausalLm> make_phi3(const Config& config) {
  using Stack = DecoderStack<Phi3Layer, nn::RmsNorm>;
  const nn::RopeOptions rope = rope_options(config);
  using Scaling = nn::RopeOptions::Scaling;
  if (rope.scaling != Scaling::none && rope.scaling != Scaling::longrope)
    config.reject(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                  "of scalings, a Phi-3 has longrope alone");
  return std::make_unique<Stack>(config, Stack::Options{.names = {"model.embed_tokens", "model.norm", "lm_head"},
                                                        .kind = "Phi3",
                                                        .norm = phi3_norm(config),
                                                        .ropes = {rope},
                                                        .rotary_dim = rotary_dim(config)});
}

}  // namespace lathe::pretrained
