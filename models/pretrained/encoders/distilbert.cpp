// DistilBERT (Sanh et al. 2019): BERT without segments and pooler, with its own tensor names.
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

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

EncoderOptions options_of(const Config& config) {
  const Dim hidden = size(config, "dim", "hidden", 768);
  return {
      .kind = "DistilBert",
      .vocab = size(config, "vocab_size", "vocab", 30522),
      .positions = size(config, "max_position_embeddings", "positions", 512),
      .d_ff = size(config, "hidden_dim", "d_ff", 3072),
      .layers = layers_of(config, "n_layers", 6),
      .activation = activation(config, "activation", nn::Activation::gelu),
      .embeddings = "distilbert.embeddings",
      .layer = "distilbert.transformer.layer",
      .attention = even_heads(config, hidden, "n_heads"),
      .names = distilbert_names,
  };
}

}  // namespace

const KeyTable& distilbert_keys() {
  static const KeyTable table({base_keys(),
                               {
                                   used("vocab_size"),
                                   used("max_position_embeddings", "512"),
                                   used("n_layers", "6"),
                                   alias("num_hidden_layers", "n_layers"),
                                   used("n_heads", "12"),
                                   alias("num_attention_heads", "n_heads"),
                                   used("dim", "768"),
                                   alias("hidden_size", "dim"),
                                   used("hidden_dim", "3072"),
                                   used("activation", "\"gelu\""),
                                   used("tie_word_embeddings", "true"),
                                   harmless("sinusoidal_pos_embds", initial_reason),
                                   harmless("dropout", dropout_reason),
                                   harmless("attention_dropout", dropout_reason),
                                   harmless("qa_dropout", other_head_reason),
                                   harmless("seq_classif_dropout", other_head_reason),
                                   harmless("tie_weights_", unread_reason),
                               }});
  return table;
}

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
    reject_architecture(config, "DistilBertModel and DistilBertForMaskedLM");
  }
  return distilbert;
}

}  // namespace lathe::pretrained
