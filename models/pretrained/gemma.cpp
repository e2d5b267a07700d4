// Gemma 2 and Gemma 3 (text): norms before and after each sublayer, which multiply by 1 + w; embeddings times the
// root of the width; layers with and without a window. Gemma 2 caps scores; Gemma 3 norms q and k and has two rotary
// bases.
#include <fmt/core.h>

#include <cmath>

#include "frontend/ops/ops.h"
#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions gemma_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("rms_norm_eps", 1e-6), .unit_offset = true};
}

bool is_gemma3(const Config& config) { return config.text("model_type") == "gemma3_text"; }

nn::SelfAttentionOptions gemma_attention(const Config& config, int layer) {
  nn::SelfAttentionOptions options = attention_options(config);
  options.bias = options.o_bias = config.boolean("attention_bias", false);
  options.norm = is_gemma3(config) ? nn::QueryNorm::head : nn::QueryNorm::none;
  options.norm_options = gemma_norm(config);
  options.attention = {.scale = 1 / std::sqrt(config.real("query_pre_attn_scalar", 256)),
                       .soft_cap = config.real("attn_logit_softcapping", 0),  // Gemma 2 only
                       .window = window_of(config, layer)};
  return options;
}

/// The keys that Gemma 2 and 3 share.
std::vector<KeyRule> gemma_keys(std::string_view theta, std::string_view max_length) {
  std::vector<KeyRule> rules = decoder_keys(theta, max_length);
  const std::vector<KeyRule> others{
      used("num_key_value_heads", "4"),
      used("head_dim", "256"),
      used("hidden_activation", "\"gelu_pytorch_tanh\""),
      harmless("hidden_act", "the library reads hidden_activation"),
      used("tie_word_embeddings", "true"),
      used("attention_bias"),
      used("query_pre_attn_scalar", "256"),
      used("sliding_window", "4096"),
      used("layer_types"),
      refused("use_bidirectional_attention", "[false]",
              "its tokens see those after them, so that it is no causal language model"),
  };
  rules.insert(rules.end(), others.begin(), others.end());
  return rules;
}

struct GemmaLayer : nn::Module {
  GemmaLayer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("model.layers.{}", i), "GemmaLayer"),
        is_full(!window_of(config, i)),
        self_attn(*this, "self_attn", gemma_attention(config, i)),
        mlp(*this, "mlp", size(config, "hidden_size", "hidden"), size(config, "intermediate_size", "d_ff"),
            {.dtype = stored_dtype(config), .activation = activation(config, "hidden_activation")}),
        input_norm(*this, "input_layernorm", size(config, "hidden_size", "hidden"), gemma_norm(config)),
        post_attention(*this, "post_attention_layernorm", size(config, "hidden_size", "hidden"), gemma_norm(config)),
        pre_feedforward(*this, "pre_feedforward_layernorm", size(config, "hidden_size", "hidden"),
                        gemma_norm(config)),
        post_feedforward(*this, "post_feedforward_layernorm", size(config, "hidden_size", "hidden"),
                         gemma_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const nn::RotaryTables& tables = is_full ? call.tables.front() : call.tables.back();
    const Tensor y = x + post_attention(self_attn(input_norm(x), call.context, tables));
    return y + post_feedforward(mlp(pre_feedforward(y)));
  }

  bool is_full;
  nn::SelfAttention self_attn;
  nn::GatedFeedForward mlp;
  nn::RmsNorm input_norm, post_attention, pre_feedforward, post_feedforward;
};

/// Rope options: first of the full layers, then of the windowed ones.
std::vector<nn::RopeOptions> ropes_of(const Config& config) {
  std::vector<nn::RopeOptions> ropes{rope_options(config, "full_attention")};
  if (is_gemma3(config)) ropes.push_back(rope_options(config, "sliding_attention"));
  return ropes;
}

class Gemma final : public DecoderStack<GemmaLayer, nn::RmsNorm> {
 public:
  explicit Gemma(const Config& config)
      : DecoderStack(config, {.names = {"model.embed_tokens", "model.norm", "lm_head"},
                              .kind = "Gemma",
                              .norm = gemma_norm(config),
                              .ropes = ropes_of(config),
                              .rotary_dim = attention_options(config).d}),
        embedding_scale_(std::sqrt(config.real("hidden_size"))),
        cap_(config.real("final_logit_softcapping", 0)) {}

  Tensor head(const Tensor& x) const override {
    const Tensor logits = CausalLm::head(x);
    return cap_ == 0 ? logits : tanh(logits / cap_) * cap_;
  }

 private:
  Tensor embed(const TokenInputs& inputs, const Tensor& positions) const override {
    return CausalLm::embed(inputs, positions) * embedding_scale_;
  }

  double embedding_scale_, cap_;
};

}  // namespace

const KeyTable& gemma2_keys() {
  static const KeyTable table({base_keys(),
                               gemma_keys("10000.0", "8192"),
                               {used("attn_logit_softcapping", "50.0"), used("final_logit_softcapping", "30.0")}});
  return table;
}

const KeyTable& gemma3_keys() {
  static const KeyTable table(
      {base_keys(),
       gemma_keys("1000000.0", "131072"),
       {used("rope_local_base_freq", "10000.0"), used("sliding_window_pattern"), used("final_logit_softcapping"),
        harmless("_sliding_window_pattern", "the library reads layer_types or sliding_window_pattern"),
        harmless("attn_logit_softcapping", "the library's Gemma 3 keeps the value and does not apply it")}});
  return table;
}

std::unique_ptr<CausalLm> make_gemma(const Config& config) { return std::make_unique<Gemma>(config); }

}  // namespace lathe::pretrained
