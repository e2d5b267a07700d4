// Mixtral (Jiang et al. 2024): Llama with mixtures of experts as feed-forwards.
#include <fmt/core.h>

#include "frontend/nn/experts.h"
#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

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
    return y + block_sparse_moe(post_norm(y), call.dispatch, call.routers);
  }

  nn::SelfAttention self_attn;
  nn::Experts block_sparse_moe;
  nn::RmsNorm input_norm, post_norm;
};

class Mixtral final : public DecoderStack<MixtralLayer, nn::RmsNorm> {
 public:
  Mixtral(const Config& config, const Options& options) : DecoderStack(config, options) {
    if (config.boolean("output_router_logits", false))
      router_loss_ = {.factor = config.real("router_aux_loss_coef"), .chosen = config.integer("num_experts_per_tok")};
  }
  RouterLoss router_loss() const override { return router_loss_; }

 private:
  RouterLoss router_loss_;
};

}  // namespace

const KeyTable& mixtral_keys() {
  static const KeyTable table(
      {base_keys(),
       decoder_keys("1000000.0", "131072"),
       {used("num_key_value_heads", "8"), used("rms_norm_eps", "1e-05"), used("sliding_window"),
        used("num_local_experts", "8"), alias("num_experts", "num_local_experts"), used("num_experts_per_tok", "2"),
        used("output_router_logits", "false"), used("router_aux_loss_coef", "0.001"),
        harmless("router_jitter_noise", "inference adds no noise, and fine-tuning runs without it")}});
  return table;
}

std::unique_ptr<CausalLm> make_mixtral(const Config& config) {
  return std::make_unique<Mixtral>(config, Mixtral::Options{.names = {"model.embed_tokens", "model.norm", "lm_head"},
                                                            .kind = "Mixtral",
                                                            .norm = mixtral_norm(config),
                                                            .ropes = {rope_options(config)},
                                                            .rotary_dim = attention_options(config).d});
}

}  // namespace lathe::pretrained
