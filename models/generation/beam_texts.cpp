#include "models/generation/beam_texts.h"

#include <algorithm>

namespace lathe {

namespace {

std::string decoded(const Tokenizer& tokenizer, std::span<const std::int64_t> tokens) {
  return tokenizer.decode(std::vector<TokenId>(tokens.begin(), tokens.end()));
}

/// Returns the position of the first stop string; npos if there is none.
std::size_t first_stop(const std::string& text, const GenerationOptions& options) {
  std::size_t first = std::string::npos;
  for (const std::string& stop : options.stop_strings)
    if (!stop.empty()) first = std::min(first, text.find(stop));
  return first;
}

}  // namespace

BeamOptions beam_options(const GenerationOptions& options, std::int64_t opening, std::int64_t longest,
                         const Tokenizer& tokenizer) {
  BeamOptions search{.width = options.beams.width,
                     .results = options.beams.results,
                     .longest = longest - opening,
                     .length_penalty = options.beams.length_penalty,
                     .early_stopping = options.beams.early_stopping,
                     .end_tokens = options.stop_tokens};
  if (options.rules.any() || options.sampling.repetition_penalty != 1)
    search.adjust = [&options, opening, longest](std::span<const std::int64_t> sequence, std::span<double> logits) {
      adjust_logits(options,
                    {.tokens = sequence, .prompt = opening, .longest = longest, .end_tokens = options.stop_tokens},
                    logits);
    };
  if (!options.stop_strings.empty())
    search.ends = [&options, &tokenizer, opening](std::span<const std::int64_t> sequence) {
      const auto added = sequence.subspan(static_cast<std::size_t>(opening));
      return first_stop(decoded(tokenizer, added), options) != std::string::npos;
    };
  return search;
}

std::string text_of(const Tokenizer& tokenizer, std::span<const std::int64_t> tokens,
                    const GenerationOptions& options) {
  const auto& stops = options.stop_tokens;
  const bool stopped = !tokens.empty() && std::find(stops.begin(), stops.end(), tokens.back()) != stops.end();
  const std::string text = decoded(tokenizer, stopped ? tokens.first(tokens.size() - 1) : tokens);
  return text.substr(0, first_stop(text, options));
}

}  // namespace lathe
