// Mixtral (Jiang et al. 2024): Llama with feed-forwards of which each token takes the few that a router likes best.
#include <fmt/core.h>

#include <limits>

#include "frontend/pretrained/causal_lm.h"
#include "frontend/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("rms_norm_eps", 1e-5)};
}

nn::SelfAttentionOptions attention(const Config& config) {
  nn::SelfAttentionOptions options = attention_options(config);
  if (config.has("sliding_window")) options.attention.window = config.integer("sliding_window");
  return options;
}

/// Every expert computes every token; the router's weights make the sum.
class Experts : public nn::Module {
 public:
  Experts(const Module& parent, const Config& config)
      : Module(parent, "block_sparse_moe", "Experts"),
        chosen_(config.integer("num_experts_per_tok")),
        gate_(*this, "gate", size(config, "hidden_size", "hidden"), size(config, "num_local_experts", "experts"),
              {.dtype = stored_dtype(config), .bias = false}) {
    const std::int64_t count = config.integer("num_local_experts");
    if (chosen_ < 1 || chosen_ > count) config.reject("num_experts_per_tok", "it is from 1 to num_local_experts");
    for (std::int64_t i = 0; i < count; ++i)
      experts_.emplace_back(*this, fmt::format("experts.{}", i), size(config, "hidden_size", "hidden"),
                            size(config, "intermediate_size", "d_ff"),
                            nn::GatedFeedForwardOptions{.dtype = stored_dtype(config),
                                                        .activation = activation(config, "hidden_act"),
                                                        .gate = "w1",
                                                        .up = "w3",
                                                        .down = "w2"});
  }

  Tensor operator()(const Tensor& x) const {
    const Tensor weights = route(gate_(x).softmax(-1));  // [B, T, experts]
    Tensor sum;
    for (std::size_t i = 0; i < experts_.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const Tensor part = experts_[i](x) * weights.slice(-1, at, at + 1);  // [B, T, hidden]
      sum = sum.is_empty() ? part : sum + part;
    }
    return sum;
  }

 private:
  /// The largest of each row, as they are to 1; the others 0.
  Tensor route(const Tensor& probabilities) const {
    Tensor left = probabilities, picked;
    for (std::int64_t i = 0; i < chosen_; ++i) {
      const Tensor largest = left == left.max(-1, true);
      picked = picked.is_empty() ? largest : picked | largest;
      left = left.masked_fill(largest, -std::numeric_limits<double>::infinity());
    }
    const Tensor kept = probabilities.masked_fill(~picked, 0);
    return kept / kept.sum(-1, true);
  }

  std::int64_t chosen_;
  nn::Linear gate_;
  std::vector<nn::GatedFeedForward> experts_;
};

struct Layer : nn::Module {
  Layer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("model.layers.{}", i), "MixtralLayer"),
        self_attn(*this, "self_attn", attention(config)),
        experts(*this, config),
        input_norm(*this, "input_layernorm", size(config, "hidden_size", "hidden"), norm(config)),
        post_norm(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + self_attn(input_norm(x), call.context, call.tables[0]);
    return y + experts(post_norm(y));
  }

  nn::SelfAttention self_attn;
  Experts experts;
  nn::RmsNorm input_norm, post_norm;
};

}  // namespace

std::unique_ptr<CausalLm> make_mixtral(const Config& config) {
  using Stack = DecoderStack<Layer, nn::RmsNorm>;
  return std::make_unique<Stack>(config, Stack::Options{.names = {"model.embed_tokens", "model.norm", "lm_head"},
                                                        .kind = "Mixtral",
                                                        .norm = norm(config),
                                                        .ropes = {rope_options(config)},
                                                        .rotary_dim = attention_options(config).d});
}

}  // namespace lathe::pretrained
