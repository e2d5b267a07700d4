// BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019), whose positions start at the padding's id + 1.
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/encoders/encoder_options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

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
EncoderOptions describe_root(const Config& config, std::string_view kind, const std::string& root) {
  return {
      .kind = kind,
      .vocab = size(config, "vocab_size", "vocab"),
      .positions = size(config, "max_position_embeddings", "positions"),
      .d_ff = size(config, "intermediate_size", "d_ff"),
      .types = size(config, "type_vocab_size", "types"),
      .layers = layers_of(config, "num_hidden_layers"),
      .activation = activation(config, "hidden_act"),
      .norm_eps = config.real("layer_norm_eps"),
      .embeddings = root + ".embeddings",
      .layer = root + ".encoder.layer",
      .attention = even_heads(config, size(config, "hidden_size", "hidden"), "num_attention_heads"),
      .names = bert_names,
      .pooler = root + ".pooler.dense",
  };
}

EncoderOptions describe_bert(const Config& config) {
  EncoderOptions options = describe_root(config, "Bert", "bert");
  options.head_tensors = "cls.predictions.*";
  options.head = head_if(config, {"BertForMaskedLM", "BertForPreTraining"}, {"BertModel"},
                         {.dense = "cls.predictions.transform.dense",
                          .norm = "cls.predictions.transform.LayerNorm",
                          .table = "cls.predictions.decoder.weight",
                          .bias = "cls.predictions.decoder.bias",
                          .activation = options.activation,
                          .is_tied = config.boolean("tie_word_embeddings", true)});
  return options;
}

EncoderOptions describe_roberta(const Config& config) {
  EncoderOptions options = describe_root(config, "Roberta", "roberta");
  options.padding = config.integer("pad_token_id");
  if (*options.padding < 0 || options.padding >= options.positions.value())
    config.reject("pad_token_id", "positions count from it, so it is from 0 to max_position_embeddings - 1");
  options.head_tensors = "lm_head.*";
  options.head = head_if(config, {"RobertaForMaskedLM", "XLMRobertaForMaskedLM"}, {"RobertaModel", "XLMRobertaModel"},
                         {.dense = "lm_head.dense",
                          .norm = "lm_head.layer_norm",
                          .table = "lm_head.decoder.weight",
                          .bias = "lm_head.decoder.bias",
                          .is_tied = config.boolean("tie_word_embeddings", true)});
  return options;
}

KeyTable bert_keys() { return KeyTable({base_keys(), encoder_keys(), {used("tie_word_embeddings", "true")}}); }

}  // namespace

Family bert() {
  return {.model_types = {"bert"},
          .keys = bert_keys(),
          .make = describe_bert,
          .names = {.ignored = {"*.embeddings.position_ids", "cls.seq_relationship.*", "cls.predictions.bias"},
                    .prefix = "bert.",
                    .others = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                               {".LayerNorm.bias", ".LayerNorm.beta"},
                               {"cls.predictions.decoder.bias", "cls.predictions.bias"}}}};
}

Family roberta() {
  return {.model_types = {"roberta", "xlm-roberta"},
          .keys = KeyTable({bert_keys().rules(), {used("vocab_size", "50265"), used("pad_token_id", "1")}}),
          .make = describe_roberta,
          .names = {.ignored = {"*.embeddings.position_ids", "lm_head.bias"},
                    .prefix = "roberta.",
                    .others = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                               {".LayerNorm.bias", ".LayerNorm.beta"},
                               {"lm_head.decoder.bias", "lm_head.bias"}}}};
}

}  // namespace lathe::pretrained::families
