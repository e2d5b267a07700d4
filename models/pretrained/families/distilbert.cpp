// DistilBERT (Sanh et al. 2019): BERT without segments and pooler, with its own tensor names.
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/encoders/encoder_options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

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

EncoderOptions describe_distilbert(const Config& config) {
  EncoderOptions options{
      .kind = "DistilBert",
      .vocab = size(config, "vocab_size", "vocab"),
      .positions = size(config, "max_position_embeddings", "positions"),
      .d_ff = size(config, "hidden_dim", "d_ff"),
      .layers = layers_of(config, "n_layers"),
      .activation = activation(config, "activation"),
      .embeddings = "distilbert.embeddings",
      .layer = "distilbert.transformer.layer",
      .attention = even_heads(config, size(config, "dim", "hidden"), "n_heads"),
      .names = distilbert_names,
      .head_tensors = "vocab_*",
  };
  options.head = head_if(config, {"DistilBertForMaskedLM"}, {"DistilBertModel"},
                         {.dense = "vocab_transform",
                          .norm = "vocab_layer_norm",
                          .table = "vocab_projector.weight",
                          .bias = "vocab_projector.bias",
                          .activation = options.activation,
                          .is_tied = config.boolean("tie_word_embeddings", true)});
  return options;
}

KeyTable distilbert_keys() {
  return KeyTable({base_keys(),
                   {
                       used("vocab_size", "30522"),
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
}

}  // namespace

Family distilbert() {
  return {.model_types = {"distilbert"},
          .keys = distilbert_keys(),
          .make = describe_distilbert,
          .names = {.ignored = {"*.embeddings.position_ids"}, .prefix = "distilbert."}};
}

}  // namespace lathe::pretrained::families
