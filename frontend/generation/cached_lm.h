#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/pretrained/causal_lm.h"
#include "runtime/executable.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

struct CachedLmOptions {
  DType dtype = f32;             ///< to compute in, and of the cache; weights stay as they are stored
  std::int64_t chunk = 512;      ///< tokens of a prompt that are read in one run
  int threads = 0;               ///< 0: one a CPU
  ObjectStore* cache = nullptr;  ///< of compiled code
  Target target = Target::host();
};

/// Whether weights are worth a copy to memory (Parameters::copy_to_memory): where that leaves free at least as much
/// again.
bool fits_in_memory(const Parameters& weights);

/// A causal language model compiled to go on with sequences: what it has seen is kept as keys and values, so that a
/// new token costs one step. Sequences of one batch may differ in length. Code is compiled once, when it is first
/// used; as sequences grow, the cache grows in steps (256, 1024, 4096, .. positions) and nothing is compiled again.
class CachedLm {
 public:
  using TokenId = std::int64_t;
  using Options = CachedLmOptions;

  /// The weights are borrowed, and stay where they are.
  CachedLm(const pretrained::CausalLm& model, const Parameters& weights, const Options& options = {});

  /// Starts anew with a prompt for each sequence: logits [B, vocab], f32 or f64, of the token after each, good until
  /// the next call. UserErrors [generation_prompt] for no prompts or an empty one, [generation_length] past the
  /// positions that the model has, [index_range] for a token that is not in the vocabulary.
  const HostTensor& start(std::span<const std::vector<TokenId>> prompts);
  /// Adds a token to each sequence, but those that `done` marks: logits of the next. UserErrors [generation_batch],
  /// [generation_length], [index_range].
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {});

  /// Those of the last call.
  const HostTensor& logits() const { return logits_; }
  /// The longest sequence that there can be.
  std::int64_t most_positions() const { return most_positions_; }

  /// Sequences, and tokens of the longest.
  std::int64_t batch() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length() const;
  /// Positions that the cache has room for, and what it takes.
  std::int64_t capacity() const { return capacity_; }
  std::int64_t cache_bytes() const;

  /// The graphs, to be looked at. Dims: B, T; capacity, length (and window_rows) of nn::KeyValueCache.
  ///   prompt: input_ids i64 [B, T], last i64 [B], the place of each sequence's last token among the T
  ///   ragged: the same with positions i64 [B, T]
  ///   step:   input_ids and positions i64 [B, 1]
  /// Each gives logits [B, vocab], in f64 where that is computed in, else in f32.
  enum class Kind : std::uint8_t { prompt, ragged, step };
  static ir::Graph graph(const pretrained::CausalLm& model, Kind kind, DType dtype, const Dim& batch = Dim("B"));

 private:
  /// A state of the graphs: [B, kv, rows, d].
  struct CacheState {
    std::string name;
    DType dtype;
    Shape shape;
  };
  struct Compiled {
    Executable executable;
    bool takes_length;  ///< false where all attentions have windows
  };
  void run(Kind kind, const InputRefs& inputs, HostTensor& logits, std::int64_t length);
  Parameters& store() { return batch() == 1 ? single_store_ : batch_store_; }
  void make_room(std::int64_t length, bool keep);
  void check_length(std::int64_t length) const;
  void read_chunk(std::span<const std::vector<TokenId>> prompts, std::int64_t first, std::int64_t count, bool ragged);

  const pretrained::CausalLm& model_;
  Options options_;
  /// The weights with the cache of a batch, and of one sequence, whose code knows that there is one.
  Parameters batch_store_, single_store_;
  std::vector<CacheState> states_;
  std::int64_t window_rows_ = 0;  ///< that an attention with a window needs at most; 0: there is none
  std::int64_t capacity_ = 0, most_positions_ = 0;
  std::map<std::pair<Kind, bool>, Compiled> compiled_;  ///< true: for one sequence
  std::vector<std::int64_t> lengths_;
  std::vector<TokenId> last_;
  HostTensor logits_, chunk_logits_;
};

}  // namespace lathe
