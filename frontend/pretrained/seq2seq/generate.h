#pragma once

#include <cstdint>
#include <vector>

#include "frontend/beam_search.h"
#include "frontend/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/executable.h"

namespace lathe::pretrained {

/// Writes what a decoder has to say about what its encoder read: two graphs over the model's weights, the encoder
/// once for a text, the decoder anew for each token over all tokens before.
///
///   pretrained::Seq2SeqGenerator t5(pretrained::load_seq2seq_lm("t5-small"));
///   const auto ids = t5.greedy(prompt, 20, {t5.model().end_token()});
class Seq2SeqGenerator {
 public:
  /// `options`: how both graphs are compiled; the parameters are the model's.
  explicit Seq2SeqGenerator(PretrainedSeq2SeqLm model, DType dtype = f32, CompileOptions options = {});

  const Seq2SeqLm& model() const { return *model_.model; }

  /// The most likely token each time, up to `longest` of them, an end token with it; without the start token.
  std::vector<std::int64_t> greedy(const std::vector<std::int64_t>& ids, std::int64_t longest,
                                   const std::vector<std::int64_t>& end_tokens);
  /// Sequences from the start token on, the best first. UserErrors of beam_search().
  std::vector<Beam> beams(const std::vector<std::int64_t>& ids, const BeamOptions& options);

 private:
  /// What the encoder makes of a text: [1, S, hidden].
  HostTensor read(const std::vector<std::int64_t>& ids);
  /// Logits of the next token of each sequence.
  std::vector<std::vector<double>> next(const HostTensor& memory,
                                        std::span<const std::vector<std::int64_t>> sequences);

  PretrainedSeq2SeqLm model_;
  Executable encode_, decode_;
};

}  // namespace lathe::pretrained
