#include "frontend/decode/beam_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/support/error.h"

namespace lathe {

namespace {

/// Score of an empty slot; also added to the score of a beam that has ended, so that it is not extended further.
constexpr double nothing = -1e9;

struct Extension {
  std::vector<std::int64_t> tokens;
  std::int64_t parent = 0;  // index in going_ of the beam that it extends
  double score = nothing;   // sum of log-probabilities; once ended, divided by length^length_penalty
  bool ended = false;
};

std::vector<double> log_softmax(const std::vector<double>& logits) {
  if (logits.empty())
    throw UserError("beam search: a sequence has no logits", "decoding_row", "give one logit for each token");
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  std::vector<double> result;
  for (const double x : logits) result.push_back(x - largest - std::log(sum));
  return result;
}

/// Keeps the `count` highest scores in descending order. Ties keep their order.
void keep_best(std::vector<Extension>& all, std::size_t count) {
  std::stable_sort(all.begin(), all.end(), [](const Extension& a, const Extension& b) { return a.score > b.score; });
  if (all.size() > count) all.resize(count);
}

class Search {
 public:
  Search(const std::vector<std::int64_t>& start, const BeamOptions& options)
      : options_(options), width_(static_cast<std::size_t>(options.width)) {
    going_.assign(width_, {.tokens = start});
    for (std::size_t i = 0; i < width_; ++i) going_[i].parent = static_cast<std::int64_t>(i);
    going_.front().score = 0;
    ended_.resize(width_);
  }

  std::vector<Beam> run(const NextLogits& next) {
    for (bool goes_on = true; goes_on;) {
      std::vector<Extension> candidates = extended(next);
      ++added_;
      const bool all_end = mark_ended(candidates);
      const bool searching = may_improve_;
      std::vector<Extension> best(candidates.begin(),
                                  candidates.begin() + std::min(std::ssize(candidates), options_.width));
      go_on_with(std::move(candidates));
      if (searching && !(is_full() && options_.early_stopping == BeamOptions::EarlyStopping::yes))
        take_ended(std::move(best));
      may_improve_ = may_improve_ && best_possible() > worst_ended();
      const bool stops = is_full() && options_.early_stopping == BeamOptions::EarlyStopping::yes;
      goes_on = may_improve_ && !stops && !all_end;
    }
    std::vector<Beam> found;
    for (Extension& each : ended_)
      if (each.ended && std::ssize(found) < options_.results) found.push_back({std::move(each.tokens), each.score});
    if (found.empty())
      throw UserError("beam search: no sequence is possible", "decoding_logits",
                      "suppressed, bad and forced tokens exclude all");
    return found;
  }

 private:
  /// Returns the best one-token continuations. There are enough of them to leave `width` beams even if every end
  /// token is among them.
  std::vector<Extension> extended(const NextLogits& next) const {
    std::vector<std::vector<std::int64_t>> sequences;
    std::vector<std::int64_t> parents;
    for (const Extension& each : going_) {
      sequences.push_back(each.tokens);
      parents.push_back(each.parent);
    }
    const std::vector<std::vector<double>> rows = next(sequences, parents);
    if (rows.size() != sequences.size())
      throw UserError(fmt::format("beam search: {} rows of logits for {} sequences", rows.size(), sequences.size()),
                      "decoding_row", "give one for each");
    struct Step {
      std::size_t from;
      std::int64_t token;
      double score;
    };
    std::vector<Step> steps;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<double> logs = log_softmax(rows[i]);
      if (options_.adjust) options_.adjust(going_[i].tokens, logs);
      for (std::size_t token = 0; token < logs.size(); ++token)
        steps.push_back({i, static_cast<std::int64_t>(token), going_[i].score + logs[token]});
    }
    const std::size_t wanted =
        std::min(std::max<std::size_t>(2, 1 + options_.end_tokens.size()) * width_, steps.size());
    const auto better = [](const Step& a, const Step& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::pair(a.from, a.token) < std::pair(b.from, b.token);
    };
    std::partial_sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(wanted), steps.end(), better);
    std::vector<Extension> best;
    for (std::size_t i = 0; i < wanted; ++i) {
      best.push_back({.tokens = going_[steps[i].from].tokens,
                      .parent = static_cast<std::int64_t>(steps[i].from),
                      .score = steps[i].score});
      best.back().tokens.push_back(steps[i].token);
    }
    return best;
  }

  /// Marks the candidates that end by an end token, by their length or by `ends`. Returns whether all of them have
  /// ended.
  bool mark_ended(std::vector<Extension>& candidates) const {
    const auto& ends = options_.end_tokens;
    for (Extension& each : candidates)
      each.ended = added_ >= options_.longest ||
                   std::find(ends.begin(), ends.end(), each.tokens.back()) != ends.end() ||
                   (options_.ends && options_.ends(each.tokens));
    return std::all_of(candidates.begin(), candidates.end(), [](const Extension& each) { return each.ended; });
  }

  void go_on_with(std::vector<Extension> candidates) {
    for (Extension& each : candidates) {
      if (each.ended) each.score += nothing;
      each.ended = false;
    }
    keep_best(candidates, width_);
    going_ = std::move(candidates);
  }

  /// Merges the candidates of `best` that have ended into ended_, and keeps the best `width`.
  void take_ended(std::vector<Extension> best) {
    for (Extension& each : best) {
      if (!each.ended) continue;
      each.score /= std::pow(static_cast<double>(added_), options_.length_penalty);
      ended_.push_back(std::move(each));
    }
    keep_best(ended_, width_);
  }

  bool is_full() const {
    return std::all_of(ended_.begin(), ended_.end(), [](const Extension& each) { return each.ended; });
  }
  /// Upper bound on the final score of the best unfinished beam.
  double best_possible() const {
    const bool longest = options_.early_stopping == BeamOptions::EarlyStopping::never && options_.length_penalty > 0;
    const auto length = static_cast<double>(longest ? options_.longest : added_);
    return going_.front().score / std::pow(length, options_.length_penalty);
  }
  double worst_ended() const { return is_full() ? ended_.back().score : nothing; }

  const BeamOptions& options_;
  std::size_t width_;
  std::vector<Extension> going_, ended_;  // `width` of each, in descending order of score; entries of ended_ may be
                                          // empty slots
  std::int64_t added_ = 0;
  bool may_improve_ = true;
};

}  // namespace

void check(const BeamOptions& o) {
  if (o.width < 1 || o.results < 1 || o.results > o.width || o.longest < 1 || !std::isfinite(o.length_penalty))
    throw UserError(fmt::format("beam search: width {}, results {}, longest {}, length_penalty {}", o.width,
                                o.results, o.longest, o.length_penalty),
                    "decoding_options", "width, results and longest are 1 or more, results are at most width");
}

std::vector<Beam> beam_search(const std::vector<std::int64_t>& start, const BeamOptions& options,
                              const NextLogits& next) {
  check(options);
  return Search(start, options).run(next);
}

}  // namespace lathe
