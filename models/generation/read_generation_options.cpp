#include <optional>

#include "models/generation/generation_keys.h"
#include "models/generation/generation_options.h"
#include "models/pretrained/config/config.h"
#include "models/pretrained/config/model_keys.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"

namespace lathe {

namespace {

using pretrained::Config;
constexpr std::uint64_t largest_generation_config = std::uint64_t{16} << 20;

/// Reads a list of tokens, or a single token.
std::vector<std::int64_t> tokens_of_key(const Config& config, std::string_view key) {
  if (!config.has(key)) return {};
  if (!config.is_list(key)) return {config.integer(key)};
  return config.integers(key);
}

/// Reads the file from the folder, or from the base if the folder lacks it; nothing if both lack it.
std::optional<Config> read_first(const std::filesystem::path& folder, const std::filesystem::path& base,
                                 const char* name) {
  for (const std::filesystem::path& in : {folder, base}) {
    const std::filesystem::path file = in / name;
    if (!in.empty() && path_exists(file))
      return Config::parse(read_file(file, largest_generation_config), file.string());
  }
  return std::nullopt;
}

std::optional<std::int64_t> length_of(const Config& config, std::string_view key) {
  if (!config.has(key)) return std::nullopt;
  const std::int64_t length = config.integer(key);
  if (length < 1) config.reject(key, "give 1 or more");
  return length;
}

Sampling read_sampling(const Config& config) {
  const double penalty = config.real("repetition_penalty", 1);
  if (!config.boolean("do_sample", false)) return {.repetition_penalty = penalty, .temperature = 0};
  return {.repetition_penalty = penalty,
          .temperature = config.real("temperature", 1),
          .top_k = config.integer("top_k", 50),
          .top_p = config.real("top_p", 1),
          .min_p = config.real("min_p", 0),
          .typical_p = config.real("typical_p", 1)};
}

TokenRules read_rules(const Config& config) {
  TokenRules rules{.no_repeat_ngram_size = config.integer("no_repeat_ngram_size", 0),
                   .min_length = config.integer("min_length", 0),
                   .min_new_tokens = config.integer("min_new_tokens", 0),
                   .forced_eos_tokens = tokens_of_key(config, "forced_eos_token_id"),
                   .suppress_tokens = tokens_of_key(config, "suppress_tokens"),
                   .begin_suppress_tokens = tokens_of_key(config, "begin_suppress_tokens")};
  // As in transformers, min_new_tokens takes precedence over min_length.
  if (config.has("min_new_tokens")) rules.min_length = 0;
  if (config.has("bad_words_ids")) rules.bad_words = config.integer_lists("bad_words_ids");
  if (config.has("forced_bos_token_id")) rules.forced_bos_token = config.integer("forced_bos_token_id");
  return rules;
}

BeamOptions::EarlyStopping read_early_stopping(const Config& config) {
  using Early = BeamOptions::EarlyStopping;
  constexpr std::string_view key = "early_stopping";
  if (!config.is_text(key)) return config.boolean(key, false) ? Early::yes : Early::no;
  if (config.text(key) != "never") config.reject(key, "give true, false or \"never\"");
  return Early::never;
}

BeamSettings read_beams(const Config& config) {
  const BeamSettings beams{.width = config.integer("num_beams", 1),
                           .results = config.integer("num_return_sequences", 1),
                           .length_penalty = config.real("length_penalty", 1),
                           .early_stopping = read_early_stopping(config)};
  if (beams.width < 1) config.reject("num_beams", "give 1 or more");
  if (beams.results < 1 || beams.results > beams.width)
    config.reject("num_return_sequences", "give 1 to num_beams; to draw several texts, give a prompt several times");
  if (beams.width > 1 && config.boolean("do_sample", false))
    config.reject("num_beams", "do_sample is true, and Lathe computes no beam search that draws: remove one of them");
  return beams;
}

std::vector<std::string> read_stop_strings(const Config& config) {
  constexpr std::string_view key = "stop_strings";
  if (!config.has(key)) return {};
  return config.is_list(key) ? config.texts(key) : std::vector{config.text(key)};
}

GenerationOptions options_of(const Config& config) {
  GenerationOptions options{.max_new_tokens = length_of(config, "max_new_tokens"),
                            .max_length = length_of(config, "max_length"),
                            .sampling = read_sampling(config),
                            .rules = read_rules(config),
                            .beams = read_beams(config),
                            .stop_tokens = tokens_of_key(config, "eos_token_id"),
                            .stop_strings = read_stop_strings(config)};
  check(options.sampling);
  return options;
}

/// Requires decoder_start_token_id to equal that of config.json in an encoder-decoder model.
void check_start(const Config& generation, const Config& model) {
  constexpr std::string_view key = "decoder_start_token_id";
  if (!generation.has(key) || !model.boolean("is_encoder_decoder", false)) return;
  if (generation.integer(key) != model.integer(key, model.integer("pad_token_id", 0)))
    generation.reject(key, "config.json has another: Lathe begins with that one, so make them the same");
}

}  // namespace

GenerationOptions load_generation_options(const std::filesystem::path& folder, const std::filesystem::path& base) {
  const std::optional<Config> generation = read_first(folder, base, "generation_config.json"),
                              model = read_first(folder, base, "config.json");
  GenerationOptions options;
  if (generation) {
    if (model) check_start(*generation, *model);
    if (model) pretrained::check_end_tokens(*generation, *model);
    options = options_of(pretrained::known_keys(*generation, generation_keys()));
  } else if (model) {
    pretrained::check_keys(*model, generation_keys());
    options = options_of(pretrained::read_keys(*model, generation_keys()));
  }
  if (options.stop_tokens.empty() && model) options.stop_tokens = tokens_of_key(*model, "eos_token_id");
  return options;
}

std::vector<std::int64_t> load_stop_tokens(const std::filesystem::path& folder, const std::filesystem::path& base) {
  const std::optional<Config> model = read_first(folder, base, "config.json");
  for (const std::optional<Config>& config : {read_first(folder, base, "generation_config.json"), model}) {
    if (!config) continue;
    if (model) pretrained::check_end_tokens(*config, *model);
    if (std::vector<std::int64_t> tokens = tokens_of_key(*config, "eos_token_id"); !tokens.empty()) return tokens;
  }
  return {};
}

}  // namespace lathe
