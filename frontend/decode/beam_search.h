#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Beam search: the most likely continuations that are found by keeping the best few of every length. Scores, ends
/// and order are those of `generate` in transformers, with do_sample=False and num_beams=width.
namespace lathe {

struct BeamOptions {
  /// What becomes of the search when as many sequences have ended as it keeps.
  enum class EarlyStopping : std::uint8_t {
    no,     ///< it ends when the best that goes on, at its present length, is no better than the worst that ended
    yes,    ///< it ends
    never,  ///< likewise `no`, at the length at which its score is best, for a length_penalty above 0 the longest
  };
  std::int64_t width = 4;     ///< how many sequences are kept
  std::int64_t results = 1;   ///< how many are given back, at most `width`
  std::int64_t longest = 20;  ///< how many tokens are added at most
  double length_penalty = 1;  ///< a score is the sum of log-probabilities over count^length_penalty
  EarlyStopping early_stopping = EarlyStopping::no;
  std::vector<std::int64_t> end_tokens = {};  ///< with which a sequence ends
  /// Changes the log-probabilities of the token after a sequence, such as apply() of TokenRules; they are not
  /// normalized afterwards.
  std::function<void(std::span<const std::int64_t> sequence, std::span<double> log_probabilities)> adjust = {};
  /// Whether a sequence ends for another reason than an end token or its length, such as a stop string.
  std::function<bool(std::span<const std::int64_t> sequence)> ends = {};
};

/// Throws UserError [decoding_options] for numbers out of their ranges.
void check(const BeamOptions& options);

struct Beam {
  std::vector<std::int64_t> tokens;  ///< those it began with, those added, an end token with it
  double score;
};

/// Logits of the next token, a row for each of several sequences of one length. Each is one of the sequences of the
/// call before with a token more: `parents` are their indices there, 0, 1, 2, .. in the first call.
using NextLogits = std::function<std::vector<std::vector<double>>(
    std::span<const std::vector<std::int64_t>> sequences, std::span<const std::int64_t> parents)>;

/// The best continuations of `start`, the best first. Throws UserError [decoding_options] for options out of range,
/// [decoding_row] where `next` gives another number of rows, or rows without logits; [decoding_logits] where `adjust`
/// leaves no sequence possible.
std::vector<Beam> beam_search(const std::vector<std::int64_t>& start, const BeamOptions& options,
                              const NextLogits& next);

}  // namespace lathe
