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

/// New tokens of a text where neither max_new_tokens nor max_length is set.
inline constexpr std::int64_t default_new_tokens = 256;

/// A beam search instead of one token after the other; `width` 1: none. BeamOptions has the meaning of the fields.
struct BeamSettings {
  std::int64_t width = 1, results = 1;
  double length_penalty = 1;
  BeamOptions::EarlyStopping early_stopping = BeamOptions::EarlyStopping::no;
};

/// How texts are generated, and where they end.
struct GenerationOptions {
  std::optional<std::int64_t> max_new_tokens = {};  ///< has precedence over max_length
  /// The longest text in tokens, its prompt included (of a decoder with an encoder: the decoder's start token).
  std::optional<std::int64_t> max_length = {};
  Sampling sampling = {.temperature = 0};  ///< greedy
  TokenRules rules = {};
  BeamSettings beams = {};  ///< a beam search draws no tokens: of `sampling` the repetition penalty applies
  std::uint64_t seed = 0;   ///< sequence i of a batch draws by seed + i
  std::vector<std::int64_t> stop_tokens = {};
  /// A text ends before the first of them.
  std::vector<std::string> stop_strings = {};
};

/// Reads generation_config.json of a model's directory, or without that file the keys of it that config.json has.
/// Each key that transformers knows is used, or refused where it would change the text, or has no effect on it:
/// docs/generation.md lists them. `base`: the directory of the model that an adapter in `folder` belongs to, whose
/// files are read where those of the adapter are absent. UserErrors of pretrained::Config and [decoding_options].
GenerationOptions load_generation_options(const std::filesystem::path& folder,
                                          const std::filesystem::path& base = {});

/// The stop tokens alone, where no text is generated.
std::vector<std::int64_t> load_stop_tokens(const std::filesystem::path& folder,
                                           const std::filesystem::path& base = {});

/// Throws UserErrors [decoding_options], and [generation_length] for lengths below 1. `vocabulary`: the number of
/// tokens.
void check(const GenerationOptions& options, std::int64_t vocabulary);

/// The largest length of a sequence that starts with `opening` tokens, at most `most_positions`, but always one token
/// more than the opening. UserError [generation_length] where max_length leaves no new token.
std::int64_t longest_sequence(const GenerationOptions& options, std::int64_t opening, std::int64_t most_positions);

/// Applies the repetition penalty and the rules to the logits, or log-probabilities, of the next token.
void adjust_logits(const GenerationOptions& options, const PartialSequence& sequence, std::span<double> logits);

}  // namespace lathe
