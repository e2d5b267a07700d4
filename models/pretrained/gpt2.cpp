// GPT-2 (Radford et al. 2019): learned positions, layer norms before each sublayer, weights stored as [in, out].
#include <fmt/core.h>

#include <cmath>

#include "models/pretrained/causal_lm.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

Dim width(const Config& config) { return size(config, "n_embd", "hidden"); }

Dim gpt2_feed_forward(const Config& config) {
  return config.has("n_inner") ? size(config, "n_inner", "d_ff") : Dim("d_ff", width(config) * 4);
}

nn::NormOptions gpt2_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("layer_norm_epsilon", 1e-5)};
}

nn::SelfAttentionOptions gpt2_attention(const Config& config, int layer) {
  const Dim hidden = width(config), h = size(config, "n_head", "h");
  const auto d = hidden.divided_by(h);
  if (!d) config.reject("n_head", fmt::format("{} must be a multiple of it", hidden.to_string()));
  double scale = config.boolean("scale_attn_weights", true) ? 1 / std::sqrt(static_cast<double>(*d->value())) : 1;
  if (config.boolean("scale_attn_by_inverse_layer_idx", false)) scale /= layer + 1;
  return {.hidden = hidden,
          .h = h,
          .kv = h,
          .d = Dim("d", *d),
          .dtype = stored_dtype(config),
          .projections = nn::Projections::stacked,
          .o_name = "c_proj",
          .stacked_name = "c_attn",
          .bias = true,
          .o_bias = true,
          .in_out = true,
          .attention = {.scale = scale}};
}

struct Gpt2Layer : nn::Module {
  Gpt2Layer(const Module& parent, const Config& config, int i)
      : Module(parent, fmt::format("transformer.h.{}", i), "Gpt2Layer"),
        attn(*this, "attn", gpt2_attention(config, i)),
        mlp(*this, "mlp", width(config), gpt2_feed_forward(config),
            {.dtype = stored_dtype(config),
             .activation = activation(config, "activation_function"),
             .in_out = true,
             .up = "c_fc",
             .down = "c_proj"}),
        ln_1(*this, "ln_1", width(config), gpt2_norm(config)),
        ln_2(*this, "ln_2", width(config), gpt2_norm(config)) {}

  Tensor operator()(const Tensor& x, const Call& call) const {
    const Tensor y = x + attn(ln_1(x), call.context);
    return y + mlp(ln_2(y));
  }

  nn::SelfAttention attn;
  nn::FeedForward mlp;
  nn::LayerNorm ln_1, ln_2;
};

class Gpt2 final : public DecoderStack<Gpt2Layer, nn::LayerNorm> {
 public:
  explicit Gpt2(const Config& config)
      : DecoderStack(config, {.names = {"transformer.wte", "transformer.ln_f", "lm_head"},
                              .kind = "Gpt2",
                              .norm = gpt2_norm(config),
                              .layers_key = "n_layer"}),
        wpe_(*this, "transformer.wpe", size(config, "n_positions", "context"), width(config),
             {.dtype = stored_dtype(config), .flat = false}) {}

 private:
  bool has_position_table() const override { return true; }
  Tensor embed(const TokenInputs& inputs, const Tensor& positions) const override {
    return CausalLm::embed(inputs, positions) + wpe_(positions).to(inputs.dtype);
  }

  nn::Embedding wpe_;
};

}  // namespace

const KeyTable& gpt2_keys() {
  static const KeyTable table({base_keys(),
                               {
                                   used("vocab_size"),
                                   used("n_positions", "1024"),
                                   used("n_embd"),
                                   used("n_layer"),
                                   used("n_head"),
                                   used("n_inner"),
                                   alias("max_position_embeddings", "n_positions"),
                                   alias("hidden_size", "n_embd"),
                                   alias("num_hidden_layers", "n_layer"),
                                   alias("num_attention_heads", "n_head"),
                                   used("activation_function", "\"gelu_new\""),
                                   used("layer_norm_epsilon", "1e-05"),
                                   used("tie_word_embeddings", "true"),
                                   used("scale_attn_weights", "true"),
                                   used("scale_attn_by_inverse_layer_idx", "false"),
                                   harmless("reorder_and_upcast_attn", "it chooses the dtype of the scores alone"),
                                   harmless("resid_pdrop", dropout_reason),
                                   harmless("embd_pdrop", dropout_reason),
                                   harmless("attn_pdrop", dropout_reason),
                                   harmless("hidden_dropout", other_head_reason),
                                   harmless("summary_type", other_head_reason),
                                   harmless("summary_use_proj", other_head_reason),
                                   harmless("summary_activation", other_head_reason),
                                   harmless("summary_proj_to_labels", other_head_reason),
                                   harmless("summary_first_dropout", other_head_reason),
                                   harmless("summary_last_dropout", other_head_reason),
                                   harmless("n_ctx", unread_reason),
                                   harmless("is_decoder", "a model of this family is a decoder"),
                               }});
  return table;
}

std::unique_ptr<CausalLm> make_gpt2(const Config& config) { return std::make_unique<Gpt2>(config); }

}  // namespace lathe::pretrained
