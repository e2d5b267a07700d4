#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Beam search: keeps the most likely continuations of each length. Scores, end conditions and order match `generate`
/// in transformers with do_sample=False and num_beams=width.
namespace lathe {

struct BeamOptions {
  /// When the search stops, once `width` sequences have ended.
  enum class EarlyStopping : std::uint8_t {
    no,     ///< when the best unfinished beam, scored at its current length, is no better than the worst ended one
    yes,    ///< at once
    never,  ///< like `no`, but scores the beam at its best length: for length_penalty > 0, the longest one
  };
  std::int64_t width = 4;     ///< beams that are kept
  std::int64_t results = 1;   ///< sequences to return, at most `width`
  std::int64_t longest = 20;  ///< maximum number of new tokens
  double length_penalty = 1;  ///< a score is the sum of log-probabilities over count^length_penalty
  EarlyStopping early_stopping = EarlyStopping::no;
  std::vector<std::int64_t> end_tokens = {};  ///< tokens that end a sequence
  /// Changes the log-probabilities of the next token of a sequence, such as apply() of TokenRules. They are not
  /// normalized again.
  std::function<void(std::span<const std::int64_t> sequence, std::span<double> log_probabilities)> adjust = {};
  /// Returns whether a sequence ends for a reason other than an end token or its length, such as a stop string.
  std::function<bool(std::span<const std::int64_t> sequence)> ends = {};
};

/// Throws UserError [decoding_options] for numbers out of their ranges.
void check(const BeamOptions& options);

struct Beam {
  std::vector<std::int64_t> tokens;  ///< the start tokens and the new ones, including the end token
  double score;
};

/// Returns the logits of the next token, one row per sequence; all sequences have the same length. Each sequence
/// extends one from the previous call by a token: `parents` are the indices there, and 0, 1, 2, .. in the first call.
using NextLogits = std::function<std::vector<std::vector<double>>(
    std::span<const std::vector<std::int64_t>> sequences, std::span<const std::int64_t> parents)>;

/// Returns the best continuations of `start` in descending order of score. Throws UserError [decoding_options] for
/// options out of range, [decoding_row] if `next` returns the wrong number of rows or an empty row, and
/// [decoding_logits] if `adjust` leaves no sequence possible.
std::vector<Beam> beam_search(const std::vector<std::int64_t>& start, const BeamOptions& options,
                              const NextLogits& next);

}  // namespace lathe
