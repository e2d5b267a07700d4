#include "frontend/decoding.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/support/error.h"
#include "ir/support/philox.h"

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
                    "at least one token must be possible");
}

void check(const Sampling& sampling) {
  if (!(sampling.temperature >= 0) || sampling.top_k < 0 || !(sampling.top_p > 0 && sampling.top_p <= 1))
    throw UserError(fmt::format("decoding: temperature {}, top_k {}, top_p {}", sampling.temperature, sampling.top_k,
                                sampling.top_p),
                    "decoding_options", "temperature and top_k are 0 or more, top_p is above 0 and at most 1");
}

void normalise(std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= total;
}

}  // namespace

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

std::vector<double> probabilities(std::span<const double> logits, const Sampling& sampling) {
  check(sampling);
  const auto best = static_cast<std::size_t>(greedy(logits));
  std::vector<double> weights(logits.size(), 0.0);
  if (sampling.greedy()) {
    weights[best] = 1;
    return weights;
  }
  for (std::size_t i = 0; i < logits.size(); ++i)
    weights[i] = std::exp((logits[i] - logits[best]) / sampling.temperature);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (sampling.top_k > 0)
    for (auto rank = static_cast<std::size_t>(sampling.top_k); rank < order.size(); ++rank) weights[order[rank]] = 0;
  normalise(weights);
  double reached = 0;
  for (const std::size_t i : order) {
    if (reached >= sampling.top_p) weights[i] = 0;
    reached += weights[i];
  }
  normalise(weights);
  return weights;
}

std::int64_t Sampler::next(std::span<const double> logits) {
  const std::vector<double> weights = probabilities(logits, sampling_);
  const std::uint64_t n = draws_++;
  const PhiloxWords w = philox({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32), 0x64656364u, 0},
                               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  double left = uniform_f64(w[0], w[1]);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    last = static_cast<std::int64_t>(i);
    if (left < weights[i]) return last;
    left -= weights[i];
  }
  return last;  // rounding left a little over
}

}  // namespace lathe
