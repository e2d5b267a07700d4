#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/generation/sequence_model.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

namespace pretrained {
class CausalLm;
}

/// A causal language model compiled for generation. Keys and values are cached, so a new token costs one step.
/// Sequences of a batch may differ in length. Code is compiled on first use: once for each batch size for
/// which the target streams weights (Machine::streamed_rows, 4 on CPUs) and once for all larger ones. The cache grows
/// in steps (256, 1024, 4096, .. positions), and growing needs no new compilation.
///
/// A sequence's logits equal those of one pass over its tokens alone, for any chunk size and any other sequences in
/// the batch. If a new token changes the rotary angles of its sequence (CausalLm::has_same_rotation()), the step
/// recomputes the keys and values of that sequence: once for longrope, and for dynamic at each token beyond the
/// trained length.
class CachedLm final : public SequenceModel {
 public:
  using Options = SequenceModelOptions;

  /// Borrows the weights; they must outlive this object.
  CachedLm(const pretrained::CausalLm& model, const Parameters& weights, const Options& options = {});
  ~CachedLm() override;
  CachedLm(CachedLm&&) noexcept;

  const HostTensor& start(std::span<const std::vector<TokenId>> prompts) override;
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) override;
  const HostTensor& logits() const override { return logits_; }
  std::vector<TokenId> opening(const std::vector<TokenId>& prompt) const override { return prompt; }
  std::int64_t most_positions() const override { return most_positions_; }
  std::int64_t vocabulary_size() const override;
  std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) override;

  /// Number of sequences, and tokens of the longest one.
  std::int64_t batch() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length() const;
  /// Positions that the cache has room for, and its size in bytes.
  std::int64_t capacity() const { return capacity_; }
  std::int64_t cache_bytes() const;

  /// The graphs, for inspection. Dims: B, T; capacity, length (and window_rows) of nn::KeyValueCache.
  ///   prompt: input_ids i64 [B, T], last i64 [B], the position of each sequence's last token among the T
  ///   ragged: the same with positions i64 [B, T]
  ///   step:   input_ids and positions i64 [B, 1]
  ///   beams:  the same with parents i64 [B], the sequence of the previous step that each one extends
  /// Models with depends_on_length() also have lengths i64 [B] (pretrained::TokenInputs::lengths). Each graph returns
  /// logits [B, vocab], in f64 if the compute dtype is f64, else in f32.
  enum class Kind : std::uint8_t { prompt, ragged, step, beams };
  static ir::Graph graph(const pretrained::CausalLm& model, Kind kind, DType dtype, const Dim& batch = Dim("B"),
                         std::optional<DType> cache_dtype = {});

 private:
  struct Compiled;
  struct Side;
  struct Reading;
  Side& side(std::int64_t sequences);
  Compiled& compiled(Side& of, Kind kind);
  void run(const Reading& how, InputRefs inputs, HostTensor& logits, std::int64_t length);
  void make_room(Side& of, std::int64_t sequences, std::int64_t length, bool keep);
  const HostTensor& advance(std::span<const TokenId> tokens, const std::vector<bool>& done,
                            std::span<const std::int64_t> parents);
  void repeat_sequence(std::int64_t count);
  void read(Side& of, std::span<const std::vector<TokenId>> texts, std::span<const std::int64_t> lengths,
            HostTensor& logits);
  void read_chunk(const Reading& how, std::int64_t first, std::int64_t count, HostTensor& logits);
  void read_again(std::size_t row);

  const pretrained::CausalLm& model_;
  Parameters weights_;
  Options options_;
  std::int64_t streamed_rows_;
  std::unique_ptr<std::map<std::int64_t, Side>> sides_;  ///< by batch size, 0 for any size
  std::int64_t capacity_ = 0, most_positions_ = 0;
  std::vector<std::int64_t> lengths_;
  std::vector<std::vector<TokenId>> texts_;  ///< kept only if they may have to be read again
  std::vector<TokenId> last_;
  HostTensor logits_, chunk_logits_;
};

}  // namespace lathe
