#include "models/pretrained/encoders/sentence_keys.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view task_reason = "it is of encode_query() and encode_document(); embed is encode()";

}  // namespace

const KeyTable& module_keys() {
  static const KeyTable table({{
      used("path"),
      used("type"),
      harmless("idx", "modules run in the order of the list"),
      harmless("name", "it names the module for Python"),
      refused("kwargs", "[[], {}]", "Lathe calls modules without arguments of their own"),
  }});
  return table;
}

const KeyTable& pooling_keys() {
  static const KeyTable table({{
      used("word_embedding_dimension"),
      alias("embedding_dimension", "word_embedding_dimension"),
      used("pooling_mode"),
      used("pooling_mode_cls_token"),
      used("pooling_mode_max_tokens"),
      used("pooling_mode_mean_tokens"),
      used("pooling_mode_mean_sqrt_len_tokens"),
      used("pooling_mode_weightedmean_tokens"),
      used("pooling_mode_lasttoken"),
      refused("include_prompt", "[true]", "Lathe pools all tokens"),
  }});
  return table;
}

const KeyTable& normalize_keys() {
  static const KeyTable table({{
      refused("module_input_name", "[\"sentence_embedding\"]", "Lathe normalizes the vector of the sentence"),
      refused("module_output_name", "[\"sentence_embedding\"]", "Lathe normalizes the vector of the sentence"),
  }});
  return table;
}

const KeyTable& sentence_encoder_keys() {
  static const KeyTable table({{
      used("max_seq_length"),
      used("do_lower_case"),
      harmless("unpad_inputs", "padding does not change a vector"),
      harmless("query_length", task_reason),
      harmless("document_length", task_reason),
      harmless("query_expansion", task_reason),
      refused("transformer_task", "[\"feature-extraction\"]", "Lathe pools the states of the last layer"),
      refused("modality_config", R"([{"text": {"method": "forward", "method_output_name": "last_hidden_state"}}])",
              "Lathe pools the states of the last layer"),
      refused("module_output_name", "[\"token_embeddings\"]", "Lathe pools the states of the last layer"),
      refused("processing_kwargs", "[{}]", "Lathe tokenizes as the tokenizer's files say"),
      refused("tokenizer_args", "[{}]", "Lathe tokenizes as the tokenizer's files say"),
      refused("processor_kwargs", "[{}]", "Lathe tokenizes as the tokenizer's files say"),
      refused("tokenizer_name_or_path", "[\"\"]", "Lathe reads the tokenizer of the directory itself"),
      refused("model_args", "[{}]", "Lathe reads the model as its config.json says"),
      refused("model_kwargs", "[{}]", "Lathe reads the model as its config.json says"),
      refused("config_args", "[{}]", "Lathe reads the model as its config.json says"),
      refused("config_kwargs", "[{}]", "Lathe reads the model as its config.json says"),
  }});
  return table;
}

}  // namespace lathe::pretrained
