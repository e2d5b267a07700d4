// BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019), whose positions start at the padding's id + 1.
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

constexpr EncoderLayerNames bert_names{
    .q = "self.query",
    .k = "self.key",
    .v = "self.value",
    .o = "output.dense",
    .attention_norm = "attention.output.LayerNorm",
    .up = "intermediate.dense",
    .down = "output.dense",
    .output_norm = "output.LayerNorm",
};

/// Options that both share: all except the output layer. `root` is the prefix of all names.
EncoderOptions options_of(const Config& config, const std::string& root) {
  return {
      .kind = "Encoder",
      .vocab = size(config, "vocab_size", "vocab", 30522),
      .positions = size(config, "max_position_embeddings", "positions", 512),
      .d_ff = size(config, "intermediate_size", "d_ff", 3072),
      .types = size(config, "type_vocab_size", "types", 2),
      .layers = layers_of(config, "num_hidden_layers", 12),
      .activation = activation(config, "hidden_act", nn::Activation::gelu),
      .norm_eps = config.real("layer_norm_eps", 1e-12),
      .embeddings = root + ".embeddings",
      .layer = root + ".encoder.layer",
      .attention = even_heads(config, size(config, "hidden_size", "hidden", 768), "num_attention_heads"),
      .names = bert_names,
      .pooler = root + ".pooler.dense",
  };
}

}  // namespace

const KeyTable& bert_keys() {
  static const KeyTable table({base_keys(), encoder_keys(), {used("tie_word_embeddings", "true")}});
  return table;
}

const KeyTable& roberta_keys() {
  static const KeyTable table({bert_keys().rules(), {used("pad_token_id", "1")}});
  return table;
}

DescribedEncoder describe_bert(const Config& config) {
  DescribedEncoder bert{.options = options_of(config, "bert"),
                        .names = {.ignored = {"*.embeddings.position_ids", "cls.seq_relationship.*"},
                                  .prefix = "bert.",
                                  .others = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                                             {".LayerNorm.bias", ".LayerNorm.beta"},
                                             {"cls.predictions.decoder.bias", "cls.predictions.bias"}}}};
  bert.options.kind = "Bert";
  const std::string name = architecture(config);
  if (name == "BertForMaskedLM" || name == "BertForPreTraining") {
    bert.options.head = {.dense = "cls.predictions.transform.dense",
                         .norm = "cls.predictions.transform.LayerNorm",
                         .table = "cls.predictions.decoder.weight",
                         .bias = "cls.predictions.decoder.bias",
                         .activation = bert.options.activation,
                         .is_tied = config.boolean("tie_word_embeddings", true)};
    bert.names.ignored.push_back("cls.predictions.bias");
    if (bert.options.head->is_tied) bert.names.ignored.push_back("cls.predictions.decoder.weight");
  } else if (name.empty() || name == "BertModel") {
    bert.names.ignored.push_back("cls.predictions.*");
  } else {
    reject_architecture(config, "BertModel, BertForMaskedLM and BertForPreTraining");
  }
  return bert;
}

DescribedEncoder describe_roberta(const Config& config) {
  DescribedEncoder roberta{.options = options_of(config, "roberta"),
                           .names = {.ignored = {"*.embeddings.position_ids"},
                                     .prefix = "roberta.",
                                     .others = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                                                {".LayerNorm.bias", ".LayerNorm.beta"},
                                                {"lm_head.decoder.bias", "lm_head.bias"}}}};
  roberta.options.kind = "Roberta";
  roberta.options.vocab = size(config, "vocab_size", "vocab", 50265);
  roberta.options.padding = config.integer("pad_token_id", 1);
  if (*roberta.options.padding < 0 || roberta.options.padding >= roberta.options.positions.value())
    config.reject("pad_token_id", "positions count from it, so it is from 0 to max_position_embeddings - 1");
  const std::string name = architecture(config);
  if (name == "RobertaForMaskedLM" || name == "XLMRobertaForMaskedLM") {
    roberta.options.head = {.dense = "lm_head.dense",
                            .norm = "lm_head.layer_norm",
                            .table = "lm_head.decoder.weight",
                            .bias = "lm_head.decoder.bias",
                            .is_tied = config.boolean("tie_word_embeddings", true)};
    roberta.names.ignored.push_back("lm_head.bias");
    if (roberta.options.head->is_tied) roberta.names.ignored.push_back("lm_head.decoder.weight");
  } else if (name.empty() || name == "RobertaModel" || name == "XLMRobertaModel") {
    roberta.names.ignored.push_back("lm_head.*");
  } else {
    reject_architecture(config, "RobertaModel and RobertaForMaskedLM, and XLMRoberta's");
  }
  return roberta;
}

}  // namespace lathe::pretrained
