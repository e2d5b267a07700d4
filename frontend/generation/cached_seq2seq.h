#pragma once

#include <map>
#include <span>
#include <vector>

#include "frontend/decode/beam_search.h"
#include "frontend/generation/cache_states.h"
#include "frontend/generation/sequence_model.h"
#include "frontend/pretrained/seq2seq/seq2seq_lm.h"

namespace lathe {

/// A model of an encoder and a decoder, compiled to write what the decoder has to say about what the encoder read.
/// The encoder runs once for a prompt; what the decoder sees of it, and the keys and values of the decoder's own
/// tokens, are kept, so that a new token costs one step however long the text is:
///
///   const auto t5 = pretrained::load_seq2seq_lm("t5-small");
///   CachedSeq2Seq model(*t5.model, t5.weights);
///   const std::vector<std::int64_t> ends{t5.model->end_token()};
///   const std::vector<std::int64_t> ids = model.greedy(prompt, 20, ends);
class CachedSeq2Seq final : public SequenceModel {
 public:
  /// The weights are borrowed, and stay where they are.
  CachedSeq2Seq(const pretrained::Seq2SeqLm& model, const Parameters& weights,
                const SequenceModelOptions& options = {});

  /// The encoder reads the prompts, which may differ in length, and the decoder its start token.
  const HostTensor& start(std::span<const std::vector<TokenId>> prompts) override;
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) override;
  const HostTensor& logits() const override { return logits_; }
  std::vector<TokenId> opening(const std::vector<TokenId>&) const override { return {model_.start_token()}; }
  std::int64_t most_positions() const override;
  std::int64_t vocabulary_size() const override { return model_.vocabulary_size(); }

  /// The most likely token each time, up to `longest` of them, an end token with it; without the start token.
  std::vector<TokenId> greedy(const std::vector<TokenId>& prompt, std::int64_t longest,
                              std::span<const TokenId> end_tokens);
  std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) override;

  /// The graphs, to be looked at.
  ///   encode: input_ids i64 [N, S], writes the states of nn::SourceCache
  ///   step:   decoder_input_ids i64 [B, 1] -> logits [B, vocab]; dims capacity and length of nn::KeyValueCache
  ///   beams:  the same with parents i64 [B], over one source
  /// Prompts of several lengths are padded, and both encode and step have attention_mask i64 [N, S].
  enum class Kind : std::uint8_t { encode, step, beams };
  static ir::Graph graph(const pretrained::Seq2SeqLm& model, Kind kind, DType dtype, bool masked = false,
                         const Dim& batch = Dim("B"), std::optional<DType> cache_dtype = {});

 private:
  /// What is computed at a time, each with states of its own: one sequence, several, the beams of one prompt.
  enum class Work : std::uint8_t { one, several, beams };
  struct Side {
    Parameters store;
    CacheStates states = {};
    std::map<std::pair<Kind, bool>, Executable> compiled = {};
  };
  Executable& compiled(Kind kind);
  void read(std::span<const std::vector<TokenId>> prompts, Work work, std::int64_t sequences);
  const HostTensor& next(std::span<const TokenId> tokens, std::span<const std::int64_t> parents = {});
  void make_room(bool keep);

  const pretrained::Seq2SeqLm& model_;
  SequenceModelOptions options_;
  std::map<Work, Side> sides_;
  Work work_ = Work::one;
  /// Sequences, tokens of each, prompts, tokens of the longest prompt.
  std::int64_t batch_ = 0, length_ = 0, sources_ = 0, source_length_ = 0, capacity_ = 0;
  HostTensor mask_;  ///< of prompts of several lengths, else without elements
  bool is_masked_ = false;
  std::vector<TokenId> last_;
  HostTensor logits_;
};

}  // namespace lathe
