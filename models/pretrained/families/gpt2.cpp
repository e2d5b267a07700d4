// GPT-2 (Radford et al. 2019): learned positions, layer norms before each sublayer, weights stored as [in, out].
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

nn::SelfAttentionOptions gpt2_attention(const Config& config, const Dim& hidden) {
  nn::SelfAttentionOptions options = even_heads(config, hidden, "n_head");
  options.projections = nn::Projections::stacked;
  options.stacked_name = "c_attn";
  options.o_name = "c_proj";
  options.bias = options.o_bias = options.in_out = true;
  if (!config.boolean("scale_attn_weights", true)) options.attention.scale = 1;
  return options;
}

CausalLmOptions describe_gpt2(const Config& config) {
  const DType dtype = stored_dtype(config);
  const nn::NormOptions norm = norm_options(config, "layer_norm_epsilon");
  CausalLmOptions options{.kind = "Gpt2",
                          .vocab = size(config, "vocab_size", "vocab"),
                          .hidden = size(config, "n_embd", "hidden"),
                          .dtype = dtype,
                          .norm = norm,
                          .context_length = size(config, "n_positions", "context").value(),
                          .is_tied = config.boolean("tie_word_embeddings", false),
                          .positions = "transformer.wpe",
                          .embed_name = "transformer.wte",
                          .layer_name = "transformer.h",
                          .norm_name = "transformer.ln_f"};
  options.layers.assign(
      static_cast<std::size_t>(layers_of(config, "n_layer")),
      {.attention = gpt2_attention(config, options.hidden),
       .d_ff = config.has("n_inner") ? size(config, "n_inner", "d_ff") : Dim("d_ff", options.hidden * 4),
       .feed_forward = nn::FeedForwardOptions{.dtype = dtype,
                                              .activation = activation(config, "activation_function"),
                                              .in_out = true,
                                              .up = "c_fc",
                                              .down = "c_proj"},
       .norm_kind = NormKind::layer,
       .norm = norm,
       .attention_name = "attn",
       .attention_norm = "ln_1",
       .feed_forward_norm = "ln_2"});
  if (config.boolean("scale_attn_by_inverse_layer_idx", false))
    for (std::size_t i = 0; i < options.layers.size(); ++i)
      options.layers[i].attention.attention.scale /= static_cast<double>(i + 1);
  return options;
}

KeyTable gpt2_keys() {
  return KeyTable({base_keys(),
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
}

}  // namespace

Family gpt2() {
  return {.model_types = {"gpt2"},
          .keys = gpt2_keys(),
          .make = describe_gpt2,
          .names = {.ignored = {"*.attn.bias", "*.attn.masked_bias"}, .prefix = "transformer."}};
}

}  // namespace lathe::pretrained::families
