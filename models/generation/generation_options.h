#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "frontend/decode/beam_search.h"
#include "frontend/decode/decoding.h"
#include "frontend/decode/token_rules.h"

namespace lathe {

/// Number of new tokens if neither max_new_tokens nor max_length is set.
inline constexpr std::int64_t default_new_tokens = 256;

/// Beam search options (see BeamOptions); `width` 1 disables beam search.
struct BeamSettings {
  std::int64_t width = 1, results = 1;
  double length_penalty = 1;
  BeamOptions::EarlyStopping early_stopping = BeamOptions::EarlyStopping::no;
};

/// How texts are generated, and when they end.
struct GenerationOptions {
  std::optional<std::int64_t> max_new_tokens = {};  ///< takes precedence over max_length
  /// Maximum length of the text in tokens, including the prompt (encoder-decoder: the decoder's start token).
  std::optional<std::int64_t> max_length = {};
  Sampling sampling = {.temperature = 0};  ///< greedy
  TokenRules rules = {};
  BeamSettings beams = {};  ///< a beam search draws no tokens and uses only the repetition penalty of `sampling`
  std::uint64_t seed = 0;   ///< sequence i of a batch uses seed + i
  std::vector<std::int64_t> stop_tokens = {};
  /// A text ends before the first stop string.
  std::vector<std::string> stop_strings = {};
};

/// Reads generation_config.json of a model directory, or the generation keys of config.json if that file is missing.
/// Each key that transformers knows is used, ignored because it does not affect the text, or rejected because it
/// would: docs/generation.md lists them. `base`: the model directory of the adapter in `folder`; its files are read
/// if the adapter has none. Throws UserErrors of pretrained::Config and [decoding_options].
GenerationOptions load_generation_options(const std::filesystem::path& folder,
                                          const std::filesystem::path& base = {});

/// Reads only the stop tokens, for uses that do not generate text.
std::vector<std::int64_t> load_stop_tokens(const std::filesystem::path& folder,
                                           const std::filesystem::path& base = {});

/// Throws UserErrors [decoding_options], and [generation_length] for lengths less than 1. `vocabulary`: the number of
/// tokens.
void check(const GenerationOptions& options, std::int64_t vocabulary);

/// Returns the maximum length of a sequence that starts with `opening` tokens: at most `most_positions`, but at least
/// opening + 1. Throws UserError [generation_length] if max_length leaves no room for a new token.
std::int64_t longest_sequence(const GenerationOptions& options, std::int64_t opening, std::int64_t most_positions);

/// Applies the repetition penalty and the rules to the logits, or log-probabilities, of the next token.
void adjust_logits(const GenerationOptions& options, const PartialSequence& sequence, std::span<double> logits);

}  // namespace lathe
