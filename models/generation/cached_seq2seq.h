#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "frontend/decode/beam_search.h"
#include "models/generation/sequence_model.h"

namespace lathe {

namespace pretrained {
class Seq2SeqLm;
}

/// An encoder-decoder model compiled for generation. The encoder runs once per prompt. The decoder's keys and values,
/// of the source and of its own tokens, are cached, so the cost of a new token does not depend on the length of the
/// prompt:
///
///   const auto t5 = pretrained::load_pretrained<pretrained::Seq2SeqLm>("t5-small");
///   CachedSeq2Seq model(*t5.model, t5.weights);
///   const std::vector<std::int64_t> ends{t5.model->end_token()};
///   const std::vector<std::int64_t> ids = model.greedy(prompt, 20, ends);
class CachedSeq2Seq final : public SequenceModel {
 public:
  /// Borrows the weights; they must outlive this object.
  CachedSeq2Seq(const pretrained::Seq2SeqLm& model, const Parameters& weights,
                const SequenceModelOptions& options = {});
  ~CachedSeq2Seq() override;
  CachedSeq2Seq(CachedSeq2Seq&&) noexcept;

  /// Runs the encoder on the prompts, which may differ in length, and the decoder on its start token.
  const HostTensor& start(std::span<const std::vector<TokenId>> prompts) override;
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) override;
  const HostTensor& logits() const override { return logits_; }
  std::vector<TokenId> opening(const std::vector<TokenId>& prompt) const override;
  std::int64_t most_positions() const override;
  std::int64_t vocabulary_size() const override;

  /// Returns the most likely token of each step, at most `longest` tokens, including the end token but not the start
  /// token.
  std::vector<TokenId> greedy(const std::vector<TokenId>& prompt, std::int64_t longest,
                              std::span<const TokenId> end_tokens);
  std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) override;

  /// The graphs, for inspection.
  ///   encode: input_ids i64 [N, S], writes the states of nn::SourceCache
  ///   step:   decoder_input_ids i64 [B, 1] -> logits [B, vocab]; dims capacity and length of nn::KeyValueCache
  ///   beams:  the same with parents i64 [B], over one source
  /// If prompts differ in length, they are padded, and encode and step both have attention_mask i64 [N, S].
  enum class Kind : std::uint8_t { encode, step, beams };
  static ir::Graph graph(const pretrained::Seq2SeqLm& model, Kind kind, DType dtype, bool masked = false,
                         const Dim& batch = Dim("B"), std::optional<DType> cache_dtype = {});

 private:
  /// The kinds of work, each with its own states: one sequence, several sequences, the beams of one prompt.
  enum class Work : std::uint8_t { one, several, beams };
  struct Side;
  Executable& compiled(Kind kind);
  void read(std::span<const std::vector<TokenId>> prompts, Work work, std::int64_t sequences);
  const HostTensor& next(std::span<const TokenId> tokens, std::span<const std::int64_t> parents = {});
  void make_room(bool keep);

  const pretrained::Seq2SeqLm& model_;
  SequenceModelOptions options_;
  std::unique_ptr<std::map<Work, Side>> sides_;
  Work work_ = Work::one;
  /// Number of sequences, tokens of each, number of prompts, tokens of the longest prompt.
  std::int64_t batch_ = 0, length_ = 0, sources_ = 0, source_length_ = 0, capacity_ = 0;
  HostTensor mask_;  ///< for prompts of different lengths, otherwise empty
  bool is_masked_ = false;
  std::vector<TokenId> last_;
  HostTensor logits_;
};

}  // namespace lathe
