#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "frontend/decode/beam_search.h"
#include "frontend/nn/module.h"
#include "ir/support/tensors/host_tensor.h"
#include "runtime/compile.h"

namespace lathe {

/// A compiled model that generates several sequences in parallel, one token at a time, with cached keys and values.
class SequenceModel {
 public:
  using TokenId = std::int64_t;
  virtual ~SequenceModel() = default;

  /// Starts new sequences, one per prompt. Returns the logits [B, vocab], f32 or f64, of the first new token, valid
  /// until the next call. Throws UserErrors [generation_prompt] if there are no prompts or one is empty,
  /// [generation_length] past the model's positions, [index_range] for a token that is not in the vocabulary.
  virtual const HostTensor& start(std::span<const std::vector<TokenId>> prompts) = 0;
  /// Adds a token to each sequence, except those marked in `done`, and returns the logits of the next token. Throws
  /// UserErrors [generation_batch], [generation_length], [index_range].
  virtual const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) = 0;

  /// Returns the logits of the last call.
  virtual const HostTensor& logits() const = 0;
  /// Returns the tokens before the new ones: the prompt for a decoder-only model, else the decoder's start token.
  virtual std::vector<TokenId> opening(const std::vector<TokenId>& prompt) const = 0;
  /// Maximum length of a sequence, including its opening.
  virtual std::int64_t most_positions() const = 0;
  /// Number of tokens in the vocabulary.
  virtual std::int64_t vocabulary_size() const = 0;

  /// Returns the most likely sequences found by beam search, best first, each including its opening. The prompt is
  /// read once and shared by the beams. Ends all sequences that were started. Throws UserErrors of start() and
  /// beam_search().
  virtual std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) = 0;
};

/// How a SequenceModel is compiled.
struct SequenceModelOptions {
  DType dtype = f32;  ///< compute dtype; weights stay in their stored dtype
  /// Dtype of cached keys and values, including those of the source; values are rounded to it (nn::cache_dtype()).
  /// None: default_cache_dtype().
  std::optional<DType> cache_dtype = {};
  std::int64_t chunk = 512;      ///< tokens of a prompt that a decoder reads per run
  int threads = 0;               ///< 0: one per CPU
  ObjectStore* cache = nullptr;  ///< of compiled code
  Target target = Target::host();
};

/// Returns the default dtype of cached keys and values: the compute dtype, but bf16 for f32 with quantized weights,
/// whose error is larger than that of rounding to bf16.
DType default_cache_dtype(const nn::Module& model, DType dtype);

/// Compiles one of the model's graphs over a store that holds its weights. Throws UserErrors of compile().
Executable compile_over(const Parameters& store, const ir::Graph& graph, const SequenceModelOptions& options,
                        const DimBindings& sizes = {});

/// Throws UserError [generation_prompt] if there are no prompts, or one has no tokens.
void check_prompts(std::span<const std::vector<SequenceModel::TokenId>> prompts);

/// Throws UserError [generation_length] for a sequence of more tokens than the model has positions.
void check_positions(std::int64_t tokens, std::int64_t most_positions);

/// Throws UserError [generation_batch] unless step() gets a token for each of the `sequences` that were started, and
/// a mark for each or none.
void check_step(std::span<const SequenceModel::TokenId> tokens, const std::vector<bool>& done,
                std::int64_t sequences);

/// Adds a token to each beam and returns the logits [width, vocab] of the next one. Beam i continues beam parents[i]
/// of the call before.
using ExtendBeams = std::function<const HostTensor&(std::span<const SequenceModel::TokenId> tokens,
                                                    std::span<const std::int64_t> parents)>;

/// Returns the most likely sequences after `opening`, for SequenceModel::beams(). `opening_logits` [1, vocab] are
/// those of the token after it; if they are null, the first call of `extend` gets the last token of the opening.
/// Throws UserErrors of beam_search().
std::vector<Beam> search_beams(const std::vector<SequenceModel::TokenId>& opening, const HostTensor* opening_logits,
                               const BeamOptions& options, const ExtendBeams& extend);

/// Returns whether copying the weights to memory (Parameters::copy_to_memory) leaves at least as much memory free
/// again.
bool fits_in_memory(const Parameters& weights);

}  // namespace lathe
