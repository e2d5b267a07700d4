#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontend/decode/beam_search.h"
#include "frontend/nn/module.h"
#include "ir/support/tensors/host_tensor.h"
#include "runtime/executable.h"

namespace lathe {

/// A compiled model that writes sequences side by side, a token each at a time, and keeps what it has seen.
class SequenceModel {
 public:
  using TokenId = std::int64_t;
  virtual ~SequenceModel() = default;

  /// Starts anew with a prompt for each sequence: logits [B, vocab], f32 or f64, of the first token that is added,
  /// good until the next call. UserErrors [generation_prompt] for no prompts or an empty one, [generation_length]
  /// past the positions that the model has, [index_range] for a token that is not in the vocabulary.
  virtual const HostTensor& start(std::span<const std::vector<TokenId>> prompts) = 0;
  /// Adds a token to each sequence, but those that `done` marks: logits of the next. UserErrors [generation_batch],
  /// [generation_length], [index_range].
  virtual const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) = 0;

  /// Those of the last call.
  virtual const HostTensor& logits() const = 0;
  /// What stands before the tokens that are added: the prompt where that is gone on with, else the token that a
  /// decoder begins with.
  virtual std::vector<TokenId> opening(const std::vector<TokenId>& prompt) const = 0;
  /// The longest sequence that there can be, its opening counted.
  virtual std::int64_t most_positions() const = 0;
  /// Tokens of the vocabulary, the logits of a sequence.
  virtual std::int64_t vocabulary_size() const = 0;

  /// The most likely sequences that a beam search finds, the best first, each with its opening. The beams share the
  /// prompt, which is read once. Sequences that were started end. UserErrors of start() and beam_search().
  virtual std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) = 0;
};

/// How such a model is compiled.
struct SequenceModelOptions {
  DType dtype = f32;  ///< to compute in; weights stay as they are stored
  /// What keys and values of the tokens of a sequence, and of its source, are kept in, rounded to it
  /// (nn::cache_dtype()); none: default_cache_dtype().
  std::optional<DType> cache_dtype = {};
  std::int64_t chunk = 512;      ///< tokens of a prompt that a decoder reads in one run
  int threads = 0;               ///< 0: one a CPU
  ObjectStore* cache = nullptr;  ///< of compiled code
  Target target = Target::host();
};

/// What keys and values are kept in where nobody says: what is computed in, but bf16 where that is f32 and weights
/// are quantized, which moves results by more than rounding does.
DType default_cache_dtype(const nn::Module& model, DType dtype);

/// One of the graphs of such a model over a store of its weights. UserErrors of compile().
Executable compile_over(const Parameters& store, const ir::Graph& graph, const SequenceModelOptions& options);

/// Throws UserErrors [generation_prompt] where there is no prompt, or one without tokens.
void check_prompts(std::span<const std::vector<SequenceModel::TokenId>> prompts);

/// Whether weights are worth a copy to memory (Parameters::copy_to_memory): where that leaves free at least as much
/// again.
bool fits_in_memory(const Parameters& weights);

/// The logits that an output has: f64 where that is computed in, else f32.
inline DType logits_type(DType dtype) { return dtype == f64 ? f64 : f32; }

}  // namespace lathe
