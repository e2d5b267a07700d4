#include "models/pretrained/config/model_keys.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/pretrained/config/options.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view output_reason = "it chooses what a Python call returns";
constexpr std::string_view execution_reason = "it chooses how the library computes, not what";
constexpr std::string_view origin_reason = "it records where the files come from";
constexpr std::string_view text_reason = "the files of the tokenizer say it";
constexpr std::string_view generation_reason = "it sets how text is generated, not the model";
constexpr std::string_view class_reason = "it names classes, which a language model does not have";
constexpr std::string_view kind_reason = "the model would be of another kind than Lathe reads";

std::vector<KeyRule> generation_keys() {
  std::vector<KeyRule> rules;
  for (const std::string_view key : {"assistant_confidence_threshold",
                                     "assistant_lookbehind",
                                     "bad_words_ids",
                                     "begin_suppress_tokens",
                                     "cache_implementation",
                                     "decoder_start_token_id",
                                     "diversity_penalty",
                                     "do_sample",
                                     "early_stopping",
                                     "encoder_no_repeat_ngram_size",
                                     "encoder_repetition_penalty",
                                     "epsilon_cutoff",
                                     "eta_cutoff",
                                     "exponential_decay_length_penalty",
                                     "forced_bos_token_id",
                                     "forced_eos_token_id",
                                     "length_penalty",
                                     "max_length",
                                     "max_new_tokens",
                                     "min_length",
                                     "no_repeat_ngram_size",
                                     "num_assistant_tokens",
                                     "num_assistant_tokens_schedule",
                                     "num_beam_groups",
                                     "num_beams",
                                     "num_return_sequences",
                                     "output_scores",
                                     "remove_invalid_values",
                                     "repetition_penalty",
                                     "return_dict_in_generate",
                                     "suppress_tokens",
                                     "target_lookbehind",
                                     "temperature",
                                     "top_k",
                                     "top_p",
                                     "typical_p",
                                     "use_cache"})
    rules.push_back(harmless(key, generation_reason));
  return rules;
}

/// Keys that every configuration may have and that request another kind of model.
std::vector<KeyRule> refused_keys() {
  return {
      refused("is_encoder_decoder", "[false]", kind_reason),
      refused("is_decoder", "[false]", kind_reason),
      refused("add_cross_attention", "[false]", kind_reason),
      refused("cross_attention_hidden_size", {}, kind_reason),
      refused("tie_encoder_decoder", "[false]", "Lathe reads weights of an encoder and a decoder of their own"),
      refused("pruned_heads", "[{}]", "Lathe reads models with all their heads"),
      refused("per_layer_config", "[{}]", "Lathe reads models whose layers have one configuration"),
      refused("quantization_config", "[{}]",
              "the weights are quantized for another library; take the directory of the unquantized model, which "
              "`--weights q8` quantizes as it is read"),
      refused("compression_config", "[{}]",
              "the weights are compressed for another library; take the directory of the uncompressed model"),
  };
}

/// rope_parameters or rope_scaling.
const KeyTable& rope_table() {
  static const KeyTable table({{
      used("rope_type"),
      alias("type", "rope_type"),
      used("rope_theta"),
      used("factor"),
      used("original_max_position_embeddings"),
      used("attention_factor"),
      used("beta_fast"),
      used("beta_slow"),
      used("mscale"),
      used("mscale_all_dim"),
      used("truncate"),
      used("short_factor"),
      used("long_factor"),
      used("low_freq_factor"),
      used("high_freq_factor"),
      used("partial_rotary_factor"),
      refused("full_attention", {}, "all layers of this family have one rotary embedding"),
      refused("sliding_attention", {}, "all layers of this family have one rotary embedding"),
  }});
  return table;
}

/// Returns the objects of rotary embedding parameters: one for all layers, or one per kind of layer.
std::vector<Config> rope_objects(const Config& config, bool by_layer) {
  std::vector<Config> found;
  if (config.has("rope_scaling")) found.push_back(config.object("rope_scaling"));
  if (!config.has("rope_parameters")) return found;
  const Config parameters = config.object("rope_parameters");
  if (!by_layer) {
    found.push_back(parameters);
    return found;
  }
  for (const std::string& kind : parameters.keys()) {
    if (kind != "full_attention" && kind != "sliding_attention")
      config.reject("rope_parameters", "it has full_attention and sliding_attention, with the parameters of each");
    found.push_back(parameters.object(kind));
  }
  return found;
}

void check_ropes(const Config& config, const Family& family) {
  const KeyTable& table = family.keys;
  if (!table.find("rope_parameters")) return;
  const std::vector<Config> ropes = rope_objects(config, family.has_ropes_by_layer);
  if (config.is_set("rope_scaling") && config.is_set("rope_parameters") &&
      config.json("rope_scaling") != config.json("rope_parameters"))
    config.reject("rope_scaling", "rope_parameters says something else; leave one of them out");
  const KeyRule* const partial = table.find("partial_rotary_factor");
  const bool has_partial = (partial && partial->use == KeyUse::used) || table.find("rotary_pct");
  for (const Config& rope : ropes) {
    (void)check_keys(rope, rope_table());
    if (!has_partial && rope.real("partial_rotary_factor", 1) != 1)
      rope.reject("partial_rotary_factor", "models of this family rotate whole heads");
  }
}

void check_layer_types(const Config& config, const KeyTable& table) {
  const KeyRule* const rule = table.find("layer_types");
  if (!rule || rule->use != KeyUse::used || !config.has("layer_types")) return;
  const std::vector<std::string> types = config.texts("layer_types");
  if (static_cast<std::int64_t>(types.size()) != config.integer("num_hidden_layers"))
    config.reject("layer_types", fmt::format("it has {} entries for num_hidden_layers {}", types.size(),
                                             config.integer("num_hidden_layers")));
  const bool has_switch = table.find("use_sliding_window") != nullptr;
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention")
      config.reject("layer_types", "Lathe knows full_attention and sliding_attention");
    if (type == "full_attention") continue;
    if (has_switch && !config.boolean("use_sliding_window", false))
      config.reject("layer_types", "sliding_attention needs use_sliding_window true");
    if (config.contains("sliding_window") && !config.has("sliding_window"))
      config.reject("layer_types", "sliding_attention needs a sliding_window");
  }
}

}  // namespace

std::vector<KeyRule> base_keys() {
  std::vector<KeyRule> rules = generation_keys();
  const std::vector<KeyRule> others{
      used("model_type"),
      used("architectures"),
      used("dtype"),
      used("torch_dtype"),
      used("eos_token_id"),
      used("tie_word_embeddings"),
      harmless("transformers_version", origin_reason),
      harmless("name_or_path", origin_reason),
      harmless("_name_or_path", origin_reason),
      harmless("_commit_hash", origin_reason),
      harmless("auto_map", "transformers prefers its own class of the same model_type, and Lathe runs no Python"),
      harmless("output_hidden_states", output_reason),
      harmless("output_attentions", output_reason),
      harmless("return_dict", output_reason),
      harmless("use_return_dict", output_reason),
      harmless("tie_last_hidden_states", output_reason),
      harmless("chunk_size_feed_forward", execution_reason),
      harmless("attn_implementation", execution_reason),
      harmless("_attn_implementation", execution_reason),
      harmless("_attn_implementation_autoset", execution_reason),
      harmless("experts_implementation", execution_reason),
      harmless("gradient_checkpointing", execution_reason),
      harmless("pretraining_tp", execution_reason),
      harmless("torchscript", execution_reason),
      harmless("use_bfloat16", execution_reason),
      harmless("tf_legacy_loss", execution_reason),
      harmless("id2label", class_reason),
      harmless("label2id", class_reason),
      harmless("num_labels", class_reason),
      harmless("_num_labels", class_reason),
      harmless("problem_type", class_reason),
      harmless("classifier_dropout", other_head_reason),
      harmless("finetuning_task", origin_reason),
      harmless("task_specific_params", generation_reason),
      harmless("prefix", generation_reason),
      harmless("tokenizer_class", text_reason),
      harmless("bos_token_id", text_reason),
      harmless("sep_token_id", text_reason),
      harmless("cls_token_id", text_reason),
      harmless("mask_token_id", text_reason),
      harmless("pad_token_id", "padding is masked, whatever its token"),
      harmless("initializer_range", initial_reason),
  };
  rules.insert(rules.end(), others.begin(), others.end());
  const std::vector<KeyRule> refusals = refused_keys();
  rules.insert(rules.end(), refusals.begin(), refusals.end());
  return rules;
}

std::vector<KeyRule> decoder_keys(std::string_view theta, std::string_view max_length) {
  return {
      used("vocab_size"),
      used("hidden_size"),
      used("intermediate_size"),
      used("num_hidden_layers"),
      used("num_attention_heads"),
      used("num_key_value_heads"),
      used("head_dim"),
      used("hidden_act", "\"silu\""),
      used("max_position_embeddings", max_length),
      used("rms_norm_eps", "1e-06"),
      used("rope_parameters"),
      used("rope_scaling"),
      used("rope_theta", theta),
      refused("partial_rotary_factor", "[1]", "models of this family rotate whole heads"),
      harmless("attention_dropout", dropout_reason),
      harmless("is_decoder", "a model of this family is a decoder"),
  };
}

std::vector<KeyRule> encoder_keys() {
  return {
      used("vocab_size", "30522"),
      used("hidden_size", "768"),
      used("num_hidden_layers", "12"),
      used("num_attention_heads", "12"),
      used("intermediate_size", "3072"),
      used("hidden_act", "\"gelu\""),
      used("max_position_embeddings", "512"),
      used("type_vocab_size", "2"),
      used("layer_norm_eps", "1e-12"),
      refused("position_embedding_type", "[\"absolute\"]", "Lathe reads absolute positions"),
      refused("embedding_size", {}, "Lathe reads embeddings as wide as the layers"),
      harmless("hidden_dropout_prob", dropout_reason),
      harmless("attention_probs_dropout_prob", dropout_reason),
      harmless("directionality", unread_reason),
      harmless("pooler_fc_size", unread_reason),
      harmless("pooler_num_attention_heads", unread_reason),
      harmless("pooler_num_fc_layers", unread_reason),
      harmless("pooler_size_per_head", unread_reason),
      harmless("pooler_type", unread_reason),
      harmless("output_past", unread_reason),
  };
}

Config model_config(const Config& config, const Family& family) {
  (void)check_keys(config, family.keys);
  check_ropes(config, family);
  Config read = read_keys(config, family.keys);
  check_layer_types(read, family.keys);
  if (read.has("sliding_window") && read.integer("sliding_window") < 1)
    read.reject("sliding_window", "a window is 1 or more");
  check_end_tokens(read, read);
  return read;
}

void check_end_tokens(const Config& config, const Config& model) {
  constexpr std::string_view key = "eos_token_id";
  if (!config.has(key) || !model.has("vocab_size")) return;
  const std::vector<std::int64_t> tokens =
      config.is_list(key) ? config.integers(key) : std::vector{config.integer(key)};
  const std::int64_t vocabulary = model.integer("vocab_size");
  for (const std::int64_t token : tokens)
    if (token < 0 || token >= vocabulary)
      config.reject(key, fmt::format("the end token is outside the vocabulary, whose tokens are 0 to {}: no "
                                     "generated text would end; set it to the tokenizer's end token, or to "
                                     "null",
                                     vocabulary - 1));
}

void check_counts(const Config& config, std::size_t tensors) {
  const auto most = static_cast<std::int64_t>(tensors);
  std::int64_t layers = 1;
  for (const char* key : {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"})
    if (config.has(key)) {
      const std::int64_t count = config.integer(key);
      if (count > most)
        config.reject(key, fmt::format("the files contain {} tensors, too few for that many layers", tensors));
      layers = std::max(layers, count);
    }
  if (!config.has("num_local_experts")) return;
  const std::int64_t experts = config.integer("num_local_experts");
  if (experts < 1) config.reject("num_local_experts", "give 1 or more");
  if (experts > most / layers)
    config.reject("num_local_experts",
                  fmt::format("the files contain {} tensors, too few for that many experts in each of {} layers",
                              tensors, layers));
}

void reject_architecture(const Config& config, std::string_view readable) {
  const std::string name = architecture(config);
  const std::pair<std::string_view, std::string_view> heads[] = {
      {"SequenceClassification", "it has a head that classifies texts"},
      {"TokenClassification", "it has a head that classifies tokens"},
      {"QuestionAnswering", "it has a head that answers questions"},
      {"MultipleChoice", "it has a head that chooses among texts"},
      {"NextSentencePrediction", "it has a head that compares two sentences"},
      {"ImageClassification", "it has a head that classifies images"},
      {"MaskedLM", "it has the head of a masked language model"},
      {"CausalLM", "it has the head of a causal language model"},
      {"LMHeadModel", "it has the head of a causal language model"},
      {"ConditionalGeneration", "it is a model of several parts"},
      {"EncoderModel", "it is an encoder alone"},
      {"DoubleHeadsModel", "it has two heads"},
  };
  std::string_view what = name.ends_with("Model") ? "it has no output layer" : "its head is unknown to Lathe";
  for (const auto& [end, head] : heads)
    if (name.ends_with(end)) what = head;
  config.reject("architectures", fmt::format("{}; Lathe reads {}", what, readable));
}

std::vector<std::string> unread_key_notes(const Config& config, const Family& family) {
  std::vector<std::string> notes{ignored_keys_note(config, check_keys(config, family.keys))};
  if (family.keys.find("rope_parameters"))
    for (const Config& rope : rope_objects(config, family.has_ropes_by_layer))
      notes.push_back(ignored_keys_note(rope, check_keys(rope, rope_table())));
  std::erase_if(notes, [](const std::string& note) { return note.empty(); });
  return notes;
}

}  // namespace lathe::pretrained
