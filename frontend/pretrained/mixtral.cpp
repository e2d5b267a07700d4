// Mixtral (Jiang et al. 2024): Llama with feed-forwards of which each token takes the few that a router likes best.
#include <fmt/core.h>

#include "frontend/nn/experts.h"
#include "frontend/pretrained/causal_lm.h"
#include "frontend/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions mixtral_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("rms_norm_eps", 1e-5)};
}

nn::SelfAttentionOptions mixtral_attention(const Config& config) {
  nn::SelfAttentionOptions options = attention_options(config);
  if (config.has("sliding_window")) options.attention.window = config.integer("sliding_window");
  return options;
}

nn::ExpertsOptions experts(const Config& config) {
  const nn::ExpertsOptions options{.count = config.integer("num_local_experts"),
                                   .chosen = config.integer("num_experts_per_tok"),
                                   .expert = {.dtype = stored_dtype(config),
                                              .activation = activation(config, "hidden_act"),
                                              .gate = "w1",
                                              .up = "w3",
                                              .down = "w2"}};
  if (options.chosen < 1 || options.chosen > options.count)
    config.reject("num_experts_per_tok", "it is from 1 to num_local_experts");
  return options;
}

struct MixtralLayer : nn::Module {
  MixtralLayer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("model.layers.{}", i), "MixtralLayer"),
        self_attn(*this, "self_attn", mixtral_attention(config)),
        block_sparse_moe(*this, "block_sparse_moe", size(config, "hidden_size", "hidden"),
                         size(config, "intermediate_size", "d_ff"), experts(config)),
        input_norm(*this, "input_layernorm", size(config, "hidden_size", "hidden"), mixtral_norm(config)),
        post_norm(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), mixtral_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + self_attn(input_norm(x), call.context, call.tables[0]);
    return y + block_sparse_moe(post_norm(y), call.dispatch);
  }

  nn::SelfAttention self_attn;
  nn::Experts block_sparse_moe;
  nn::RmsNorm input_norm, post_norm;
};

}  // namespace

std::unique_ptr<CausalLm> make_mixtral(const Config& config) {
  using Stack = DecoderStack<MixtralLayer, nn::RmsNorm>;
  return std::make_unique<Stack>(config, Stack::Options{.names = {"model.embed_tokens", "model.norm", "lm_head"},
                                                        .kind = "Mixtral",
                                                        .norm = mixtral_norm(config),
                                                        .ropes = {rope_options(config)},
                                                        .rotary_dim = attention_options(config).d});
}

}  // namespace lathe::pretrained
