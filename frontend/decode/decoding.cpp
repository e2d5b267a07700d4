#include "frontend/decode/decoding.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/numbers/philox.h"

namespace lathe {

namespace {

void check(std::span<const double> logits) {
  if (logits.empty())
    throw UserError("decoding: there are no logits", "decoding_logits", "give one logit for each token");
  double largest = logits[0];
  for (const double x : logits) {
    if (std::isnan(x))
      throw UserError("decoding: a logit is NaN", "decoding_logits", "look for the first NaN in the model's outputs");
    largest = std::max(largest, x);
  }
  if (std::isinf(largest))
    throw UserError("decoding: no logit is finite, or one is +inf", "decoding_logits",
                    "at least one token must be possible; suppressed, bad and forced tokens may exclude all");
}

/// Returns all tokens in order of their id, with normalized probabilities.
template <class Weight>
std::vector<Candidate> all_of(std::span<const double> logits, const Weight& weight) {
  std::vector<Candidate> all;
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i);
    all.push_back({token, weight(token)});
    total += all.back().probability;
  }
  for (Candidate& each : all) each.probability /= total;
  return all;
}

/// Keeps the tokens whose information is closest to the entropy: the fewest that reach `mass`, and ties with the
/// farthest of them. The order is unchanged.
std::vector<Candidate> typical(std::vector<Candidate> from, double mass) {
  if (mass == 1) return from;
  double entropy = 0;
  for (const Candidate& each : from)
    if (each.probability > 0) entropy -= each.probability * std::log(each.probability);
  const auto distance = [&](const Candidate& each) { return std::abs(-std::log(each.probability) - entropy); };
  std::vector<Candidate> closest = from;
  std::stable_sort(closest.begin(), closest.end(),
                   [&](const Candidate& a, const Candidate& b) { return distance(a) < distance(b); });
  double reached = 0;
  std::size_t count = 0;
  for (; count + 1 < closest.size(); ++count) {
    reached += closest[count].probability;
    if (reached >= mass) break;
  }
  const double farthest = distance(closest[count]);
  std::erase_if(from, [&](const Candidate& each) { return each.probability == 0 || distance(each) > farthest; });
  double total = 0;
  for (const Candidate& each : from) total += each.probability;
  for (Candidate& each : from) each.probability /= total;
  return from;
}

/// Tokens by descending logit, ties by id. Sorts lazily, only up to the highest rank that was requested.
class Ranking {
 public:
  explicit Ranking(std::span<const double> logits) : logits_(logits), order_(logits.size()) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
  }
  std::size_t size() const { return order_.size(); }
  std::int64_t operator[](std::size_t rank) {
    while (rank >= sorted_) sort_more();
    return order_[rank];
  }

 private:
  void sort_more() {
    const auto likelier = [&](std::int64_t a, std::int64_t b) {
      const double x = logits_[a], y = logits_[b];
      return x > y || (x == y && a < b);
    };
    const std::size_t wanted = std::min(order_.size(), std::max<std::size_t>(64, sorted_ * 4));
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(sorted_),
               last = order_.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::partial_sort(first, last, order_.end(), likelier);
    sorted_ = wanted;
  }

  std::span<const double> logits_;
  std::vector<std::int64_t> order_;
  std::size_t sorted_ = 0;
};

}  // namespace

void check(const Sampling& s) {
  const auto require = [](bool holds, std::string_view name, double value, std::string_view range) {
    if (!holds) throw UserError(fmt::format("decoding: {} is {}", name, value), "decoding_options", range);
  };
  require(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty), "repetition_penalty", s.repetition_penalty,
          "give a number above 0; 1 changes nothing");
  require(s.temperature >= 0 && std::isfinite(s.temperature), "temperature", s.temperature,
          "give 0 or more; 0 takes the most likely token");
  require(s.top_k >= 0, "top_k", static_cast<double>(s.top_k), "give 0 or more; 0 keeps all");
  require(s.top_p > 0 && s.top_p <= 1, "top_p", s.top_p, "give a number above 0 and at most 1; 1 keeps all");
  require(s.min_p >= 0 && s.min_p <= 1, "min_p", s.min_p, "give 0 to 1; 0 keeps all");
  require(s.typical_p > 0 && s.typical_p <= 1, "typical_p", s.typical_p,
          "give a number above 0 and at most 1; 1 keeps all");
}

std::vector<double> logits_row(const HostTensor& logits, std::int64_t row) {
  const std::int64_t classes = logits.rank() == 0 ? 0 : logits.shape().back();
  if (classes == 0 || row < 0 || row >= logits.numel() / classes)
    throw UserError(fmt::format("decoding: there is no row {} in logits {}", row, shape_to_string(logits.shape())),
                    "decoding_row", "rows count all dims but the last");
  std::vector<double> values;
  for (std::int64_t i = 0; i < classes; ++i) values.push_back(logits.get(row * classes + i));
  return values;
}

std::int64_t greedy(std::span<const double> logits) {
  check(logits);
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

void penalize_repetition(std::span<double> logits, std::span<const std::int64_t> seen, double penalty) {
  check(Sampling{.repetition_penalty = penalty});
  if (penalty == 1) return;
  std::vector<bool> done(logits.size());
  for (const std::int64_t token : seen) {
    const auto i = static_cast<std::size_t>(token);
    if (token < 0 || i >= logits.size() || done[i]) continue;
    done[i] = true;
    logits[i] = logits[i] > 0 ? logits[i] / penalty : logits[i] * penalty;
  }
}

std::vector<Candidate> candidates(std::span<const double> logits, const Sampling& sampling) {
  check(sampling);
  const std::int64_t best = greedy(logits);
  if (sampling.greedy()) return {{best, 1}};
  const double top = logits[best];
  const auto weight = [&](std::int64_t token) { return std::exp((logits[token] - top) / sampling.temperature); };
  if (sampling.top_k == 0 && sampling.top_p == 1 && sampling.min_p == 0)
    return typical(all_of(logits, weight), sampling.typical_p);
  Ranking ranking(logits);
  const std::size_t most =
      sampling.top_k > 0 ? std::min(ranking.size(), static_cast<std::size_t>(sampling.top_k)) : ranking.size();
  // Top-p applies to the probability mass that top-k leaves.
  double total = 0;
  if (most < ranking.size())
    for (std::size_t rank = 0; rank < most; ++rank) total += weight(ranking[rank]);
  else
    for (std::size_t i = 0; i < logits.size(); ++i) total += weight(static_cast<std::int64_t>(i));
  std::vector<Candidate> chosen;
  double reached = 0;
  for (std::size_t rank = 0; rank < most; ++rank) {
    const std::int64_t token = ranking[rank];
    const double w = weight(token);
    if (w == 0 || (rank > 0 && (reached >= sampling.top_p * total || w < sampling.min_p))) break;
    chosen.push_back({token, w});
    reached += w;
  }
  for (Candidate& each : chosen) each.probability /= reached;
  return typical(std::move(chosen), sampling.typical_p);
}

std::vector<double> probabilities(std::span<const double> logits, const Sampling& sampling) {
  std::vector<double> all(logits.size(), 0.0);
  for (const auto& [token, probability] : candidates(logits, sampling)) all[token] = probability;
  return all;
}

Sampler::Sampler(const Sampling& sampling, std::uint64_t seed, std::uint64_t draws)
    : sampling_(sampling), seed_(seed), draws_(draws) {
  check(sampling_);
}

std::int64_t Sampler::next(std::span<const double> logits, std::span<const std::int64_t> seen) {
  std::vector<double> penalized;
  if (sampling_.repetition_penalty != 1) {
    penalized.assign(logits.begin(), logits.end());
    penalize_repetition(penalized, seen, sampling_.repetition_penalty);
    logits = penalized;
  }
  const std::vector<Candidate> from = candidates(logits, sampling_);
  const std::uint64_t n = draws_++;
  const PhiloxWords w = philox({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32), 0x64656364u, 0},
                               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  double left = uniform_f64(w[0], w[1]);
  for (const auto& [token, probability] : from) {
    if (left < probability) return token;
    left -= probability;
  }
  return from.back().token;  // the sum of the probabilities may fall short of 1 by rounding
}

}  // namespace lathe
