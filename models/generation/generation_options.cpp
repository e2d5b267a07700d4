#include "models/generation/generation_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"

namespace lathe {

namespace {

void check_length(const char* name, std::optional<std::int64_t> length) {
  if (length && *length < 1)
    throw UserError(fmt::format("{} is {}", name, *length), "generation_length", "give 1 or more");
}

}  // namespace

void check(const GenerationOptions& options, std::int64_t vocabulary) {
  check(options.sampling);
  check(options.rules, vocabulary);
  check_length("max_new_tokens", options.max_new_tokens);
  check_length("max_length", options.max_length);
  const BeamSettings& beams = options.beams;
  check(BeamOptions{.width = beams.width, .results = beams.results, .length_penalty = beams.length_penalty});
}

std::int64_t longest_sequence(const GenerationOptions& options, std::int64_t opening, std::int64_t most_positions) {
  std::int64_t added = options.max_new_tokens.value_or(default_new_tokens);
  if (!options.max_new_tokens && options.max_length) {
    added = *options.max_length - opening;
    if (added < 1)
      throw UserError(fmt::format("the prompt has {} tokens, and max_length is {}", opening, *options.max_length),
                      "generation_length", "give a shorter prompt, a larger max_length, or max_new_tokens instead");
  }
  const std::int64_t room = std::max<std::int64_t>(most_positions - opening, 1);
  return opening + std::min(added, room);
}

void adjust_logits(const GenerationOptions& options, const PartialSequence& sequence, std::span<double> logits) {
  penalize_repetition(logits, sequence.tokens, options.sampling.repetition_penalty);
  if (options.rules.any()) apply(options.rules, sequence, logits);
}

}  // namespace lathe
