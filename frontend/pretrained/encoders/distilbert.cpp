// DistilBERT (Sanh et al. 2019): BERT without segments and without a pooler, under names of its own.
#include "frontend/pretrained/encoders/encoder.h"
#include "frontend/pretrained/options.h"

namespace lathe::pretrained {

namespace {

constexpr EncoderLayerNames distilbert_names{
    .q = "q_lin",
    .k = "k_lin",
    .v = "v_lin",
    .o = "out_lin",
    .attention_norm = "sa_layer_norm",
    .up = "ffn.lin1",
    .down = "ffn.lin2",
    .output_norm = "output_layer_norm",
};

/// The family's own key, or that which other families have.
std::string_view either(const Config& config, std::string_view own, std::string_view other) {
  return config.has(own) || !config.has(other) ? own : other;
}

EncoderOptions options_of(const Config& config) {
  const Dim hidden = size(config, either(config, "dim", "hidden_size"), "hidden", 768);
  return {
      .kind = "DistilBert",
      .vocab = size(config, "vocab_size", "vocab", 30522),
      .positions = size(config, "max_position_embeddings", "positions", 512),
      .d_ff = size(config, "hidden_dim", "d_ff", 3072),
      .layers = layers_of(config, either(config, "n_layers", "num_hidden_layers"), 6),
      .activation = activation(config, "activation", nn::Activation::gelu),
      .embeddings = "distilbert.embeddings",
      .layer = "distilbert.transformer.layer",
      .attention = even_heads(config, hidden, either(config, "n_heads", "num_attention_heads")),
      .names = distilbert_names,
  };
}

}  // namespace

DescribedEncoder describe_distilbert(const Config& config) {
  DescribedEncoder distilbert{.options = options_of(config),
                              .names = {.ignored = {"*.embeddings.position_ids"}, .prefix = "distilbert."}};
  const std::string name = architecture(config);
  if (name == "DistilBertForMaskedLM") {
    distilbert.options.head = {.dense = "vocab_transform",
                               .norm = "vocab_layer_norm",
                               .table = "vocab_projector.weight",
                               .bias = "vocab_projector.bias",
                               .activation = distilbert.options.activation,
                               .is_tied = config.boolean("tie_word_embeddings", true)};
    if (distilbert.options.head->is_tied) distilbert.names.ignored.push_back("vocab_projector.weight");
  } else if (name.empty() || name == "DistilBertModel") {
    distilbert.names.ignored.push_back("vocab_*");
  } else {
    config.reject("architectures", "of DistilBERT, Lathe reads DistilBertModel and DistilBertForMaskedLM");
  }
  return distilbert;
}

}  // namespace lathe::pretrained
