#include "tests/fuzz/texts/random_model.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/families.h"

namespace lathe::fuzz {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array decoder_families{"llama", "mistral", "qwen2",       "qwen3",    "mixtral", "phi3",
                                      "olmo2", "gemma2",  "gemma3_text", "gpt_neox", "gpt2",    "granite"};
constexpr std::array encoder_families{"bert", "roberta", "distilbert"};

double real(std::mt19937& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() % 4096) / 4096;
}

Json reals(std::mt19937& random, std::int64_t count, double low, double high) {
  Json list = Json::array();
  for (std::int64_t i = 0; i < count; ++i) list.push_back(real(random, low, high));
  return list;
}

/// Returns "rope_parameters" for `rotary` dims of a head, with one of 8 scalings. dynamic scales from
/// max_position_embeddings on, which is then `turn`.
Json random_rope(std::mt19937& random, std::int64_t scaling, std::int64_t rotary, std::int64_t turn) {
  Json rope{{"rope_type", "default"}, {"rope_theta", pick(random, {100, 10000, 500000})}};
  switch (scaling) {
    case 0: return rope;
    case 1: rope.update({{"rope_type", "linear"}, {"factor", real(random, 1, 4)}}); return rope;
    case 2:
      rope.update({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", turn}});
      return rope;
    case 3:
      rope.update({{"rope_type", "llama3"},
                   {"factor", 8.0},
                   {"low_freq_factor", 1.0},
                   {"high_freq_factor", 4.0},
                   {"original_max_position_embeddings", turn}});
      return rope;
    case 4:
    case 5: rope.update({{"rope_type", "dynamic"}, {"factor", real(random, 1, 4)}}); return rope;
    default:
      rope.update({{"rope_type", "longrope"},
                   {"original_max_position_embeddings", turn},
                   {"short_factor", reals(random, rotary / 2, 1, 1.5)},
                   {"long_factor", reals(random, rotary / 2, 1.5, 6)}});
      if (one_in(random, 2)) rope["factor"] = real(random, 1, 6);
      return rope;
  }
}

Json layer_types(std::mt19937& random, std::int64_t layers) {
  Json types = Json::array();
  for (std::int64_t i = 0; i < layers; ++i)
    types.push_back(one_in(random, 2) ? "sliding_attention" : "full_attention");
  return types;
}

void add_windows(Json& config, std::mt19937& random) {
  const std::string family = config["model_type"];
  const std::int64_t window = pick(random, {1, 2, 3, 5, 9}), layers = config["num_hidden_layers"];
  const bool always = family.starts_with("gemma");
  if (!always && one_in(random, 2)) return;
  if (family == "mistral" || family == "mixtral" || family == "phi3" || always) config["sliding_window"] = window;
  if (always) config["layer_types"] = layer_types(random, layers);
  if (!family.starts_with("qwen")) return;
  config.update({{"use_sliding_window", true}, {"sliding_window", window}});
  if (one_in(random, 2))
    config["layer_types"] = layer_types(random, layers);
  else
    config["max_window_layers"] = random() % static_cast<unsigned>(layers + 1);
}

void add_ropes(Json& config, std::mt19937& random, std::int64_t head, std::int64_t turn) {
  const std::string family = config["model_type"];
  const bool part = (family == "phi3" || family == "gpt_neox") && head >= 8 && one_in(random, 2);
  const std::int64_t rotary = part ? head / 2 : head;
  const bool is_phi = family == "phi3";  // it supports only longrope, and has the original length outside of the
                                         // object
  if (is_phi) config["original_max_position_embeddings"] = turn;
  const auto rope = [&] {
    const std::int64_t scaling = is_phi ? pick(random, {0, 6, 7}) : static_cast<std::int64_t>(random() % 8);
    Json made = random_rope(random, scaling, rotary, turn);
    if (part || family == "gpt_neox") made["partial_rotary_factor"] = part ? 0.5 : 1.0;  // GPT-NeoX's default is 0.25
    if (made["rope_type"] == "dynamic") config["max_position_embeddings"] = turn;
    return made;
  };
  if (family == "gemma3_text")
    config["rope_parameters"] = {{"full_attention", rope()}, {"sliding_attention", rope()}};
  else
    config["rope_parameters"] = rope();
}

/// Configurations of all decoders with rotary embedding.
Json rotary_config(const std::string& family, std::mt19937& random, std::int64_t turn) {
  const bool shares = family != "gpt_neox";
  const std::int64_t kv = pick(random, {1, 2}),
                     heads = shares ? kv * pick(random, {1, 2, 3}) : pick(random, {1, 2, 3});
  const std::int64_t head = pick(random, {4, 6, 8});
  const bool apart = shares && family != "phi3" && one_in(random, 2);  // hidden_size is not heads * head_dim
  Json config{{"model_type", family},
              {"dtype", "float64"},
              {"vocab_size", pick(random, {19, 32, 41})},
              {"hidden_size", apart ? pick(random, {8, 12, 20}) : heads * head},
              {"intermediate_size", pick(random, {9, 16, 24})},
              {"num_hidden_layers", pick(random, {1, 2, 2, 3})},
              {"num_attention_heads", heads},
              {"max_position_embeddings", 64},
              {"tie_word_embeddings", one_in(random, 2)}};
  const char* act = family.starts_with("gemma") ? "hidden_activation" : "hidden_act";
  config[act] = one_in(random, 2) ? "silu" : "gelu_pytorch_tanh";
  if (shares) config["num_key_value_heads"] = kv;
  const bool has_own_default = family.starts_with("gemma") || family == "qwen3";  // 256, 128
  if (apart || has_own_default) config["head_dim"] = head;
  if (family == "llama" || family == "granite" || family == "qwen3" || family == "gpt_neox")
    config["attention_bias"] = one_in(random, 2);
  if (family == "gpt_neox") config["use_parallel_residual"] = one_in(random, 2);
  if (family.starts_with("gemma")) config["query_pre_attn_scalar"] = pick(random, {4, 9, 16});
  if (family == "gemma2") config.update({{"attn_logit_softcapping", 5.0}, {"final_logit_softcapping", 3.0}});
  if (family == "granite")
    config.update({{"embedding_multiplier", real(random, 1, 12)},
                   {"attention_multiplier", real(random, 0.1, 1)},
                   {"residual_multiplier", real(random, 0.2, 1)},
                   {"logits_scaling", real(random, 1, 8)}});
  if (family == "mixtral")
    config.update({{"num_local_experts", pick(random, {2, 4, 9})}, {"num_experts_per_tok", pick(random, {1, 2})}});
  add_windows(config, random);
  add_ropes(config, random, head, turn);
  return config;
}

Json gpt2_config(std::mt19937& random) {
  const std::int64_t heads = pick(random, {1, 2, 3});
  return {{"model_type", "gpt2"},
          {"dtype", "float64"},
          {"vocab_size", pick(random, {19, 32, 41})},
          {"n_positions", 64},
          {"n_embd", heads * pick(random, {4, 5, 8})},
          {"n_head", heads},
          {"n_layer", pick(random, {1, 2, 3})},
          {"activation_function", "gelu_new"},
          {"scale_attn_by_inverse_layer_idx", one_in(random, 2)}};
}

Json encoder_config(const std::string& family, std::mt19937& random) {
  const std::int64_t heads = pick(random, {1, 2, 3}), hidden = heads * pick(random, {4, 5, 8});
  Json config{{"model_type", family}, {"dtype", "float64"}, {"vocab_size", 37}, {"max_position_embeddings", 64}};
  if (family == "distilbert")
    config.update({{"architectures", {"DistilBertForMaskedLM"}},
                   {"dim", hidden},
                   {"n_heads", heads},
                   {"n_layers", pick(random, {1, 2, 3})},
                   {"hidden_dim", pick(random, {9, 16})}});
  else
    config.update({{"architectures", {family == "bert" ? "BertForMaskedLM" : "RobertaForMaskedLM"}},
                   {"hidden_size", hidden},
                   {"num_attention_heads", heads},
                   {"num_hidden_layers", pick(random, {1, 2, 3})},
                   {"intermediate_size", pick(random, {9, 16})},
                   {"type_vocab_size", family == "bert" ? 2 : 1}});
  if (family == "roberta") config["pad_token_id"] = pick(random, {0, 1, 2});
  return config;
}

Json t5_config(std::mt19937& random) {
  return {{"model_type", "t5"},
          {"dtype", "float64"},
          {"vocab_size", 37},
          {"d_model", pick(random, {8, 12, 15})},
          {"d_kv", pick(random, {4, 5, 8})},
          {"num_heads", pick(random, {1, 2, 3})},
          {"d_ff", pick(random, {9, 16})},
          {"num_layers", pick(random, {1, 2})},
          {"num_decoder_layers", pick(random, {1, 2})},
          {"relative_attention_num_buckets", pick(random, {4, 8})},
          {"relative_attention_max_distance", pick(random, {6, 12})},
          {"feed_forward_proj", one_in(random, 2) ? "relu" : "gated-gelu"},
          {"decoder_start_token_id", 0},
          {"pad_token_id", 0},
          {"eos_token_id", 1},
          {"tie_word_embeddings", one_in(random, 2)}};
}

}  // namespace

unsigned family_count() { return decoder_families.size() + encoder_families.size() + 1; }

const pretrained::Family& family_of(const RandomModel& model) { return *pretrained::find_family(model.family); }

pretrained::Config config_of(const RandomModel& model) {
  return pretrained::model_config(pretrained::Config::parse(model.config, "config.json"), family_of(model));
}

RandomModel random_model(unsigned number, std::mt19937& random) {
  std::size_t at = number % family_count();
  RandomModel made;
  made.turn = pick(random, {4, 7, 10});
  Json config;
  if (at < decoder_families.size()) {
    made.family = decoder_families[at];
    made.shifts = made.family != "gpt2";
    config = made.shifts ? rotary_config(made.family, random, made.turn) : gpt2_config(random);
  } else if (at -= decoder_families.size(); at < encoder_families.size()) {
    made.kind = ModelKind::encoder;
    made.family = encoder_families[at];
    made.shifts = made.family == "roberta";  // its positions do not count padding
    config = encoder_config(made.family, random);
  } else {
    made.kind = ModelKind::encoder_decoder;
    made.family = "t5";
    config = t5_config(random);
  }
  made.vocab = config["vocab_size"];
  made.config = config.dump(1);
  return made;
}

Parameters random_weights(const nn::Module& model, std::mt19937& random) {
  Tensors values;
  for (const nn::Parameter& parameter : model.parameters()) {
    const std::vector<std::int64_t> sizes = parameter.shape().evaluate({});
    HostTensor value(f64, sizes);
    const double bound = sizes.size() < 2 ? 0 : 2.5 / std::sqrt(static_cast<double>(sizes.back()));
    for (std::int64_t i = 0; i < value.numel(); ++i)
      value.set(i, sizes.size() < 2 ? real(random, 0.2, 1) : real(random, -bound, bound));
    values.emplace(parameter.name(), std::move(value));
  }
  return Parameters(std::move(values));
}

std::vector<Ids> random_texts(const RandomModel& model, std::size_t count, std::mt19937& random) {
  std::vector<Ids> texts(count);
  for (Ids& text : texts) {
    const std::int64_t turn = model.turn, more = random() % 3;
    const std::int64_t size = more + pick(random, {1, turn - 1, turn, turn + 1, 2 * turn, 3 * turn});
    for (std::int64_t i = 0; i < size; ++i) text.push_back(3 + random() % static_cast<unsigned>(model.vocab - 3));
  }
  return texts;
}

}  // namespace lathe::fuzz
