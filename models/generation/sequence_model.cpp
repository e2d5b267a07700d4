#include "models/generation/sequence_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "frontend/decode/decoding.h"
#include "ir/support/error.h"
#include "runtime/host/arena.h"

namespace lathe {

DType default_cache_dtype(const nn::Module& model, DType dtype) {
  const auto is_quantized = [](const nn::Parameter& parameter) { return parameter.is_quantized(); };
  return dtype == f32 && std::ranges::any_of(model.parameters(), is_quantized) ? bf16 : dtype;
}

Executable compile_over(const Parameters& store, const ir::Graph& graph, const SequenceModelOptions& options,
                        const DimBindings& sizes) {
  return compile(graph, {.target = options.target,
                         .mode = Mode::evaluation,
                         .parameters = store,
                         .share_states = true,
                         .sizes = sizes,
                         .threads = options.threads,
                         .cache = options.cache});
}

void check_prompts(std::span<const std::vector<SequenceModel::TokenId>> prompts) {
  if (prompts.empty()) throw UserError("there is no prompt", "generation_prompt", "give one or more");
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (prompts[i].empty())
      throw UserError(fmt::format("prompt {} has no tokens", i), "generation_prompt",
                      "give one token or more, such as the one that begins a text");
}

void check_positions(std::int64_t tokens, std::int64_t most_positions) {
  if (tokens > most_positions)
    throw UserError(
        fmt::format("{} tokens are more than the {} positions that the model has", tokens, most_positions),
        "generation_length", "give a shorter prompt, or ask for fewer tokens");
}

void check_step(std::span<const SequenceModel::TokenId> tokens, const std::vector<bool>& done,
                std::int64_t sequences) {
  if (sequences == 0 || std::ssize(tokens) != sequences || (!done.empty() && done.size() != tokens.size()))
    throw UserError(fmt::format("{} tokens and {} marks for {} sequences", tokens.size(), done.size(), sequences),
                    "generation_batch", "give one token for each sequence that was started");
}

std::vector<Beam> search_beams(const std::vector<SequenceModel::TokenId>& opening, const HostTensor* opening_logits,
                               const BeamOptions& options, const ExtendBeams& extend) {
  std::optional<std::vector<double>> first;
  if (opening_logits) first = logits_row(*opening_logits, 0);
  return beam_search(opening, options, [&](auto sequences, auto parents) {
    // The first step of every beam follows the opening.
    if (first) return std::vector(sequences.size(), *std::exchange(first, std::nullopt));
    std::vector<SequenceModel::TokenId> tokens;
    for (const auto& sequence : sequences) tokens.push_back(sequence.back());
    const HostTensor& logits = extend(tokens, parents);
    std::vector<std::vector<double>> rows;
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i) rows.push_back(logits_row(logits, i));
    return rows;
  });
}

bool fits_in_memory(const Parameters& weights) {
  const std::int64_t available = memory_info().available;
  return available > 0 && weights.bytes() <= available / 2;
}

}  // namespace lathe
