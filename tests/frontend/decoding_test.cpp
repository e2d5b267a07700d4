#include "frontend/decode/decoding.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "ir/support/error.h"

using namespace lathe;

namespace {
const std::vector<double> logits{std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};
std::vector<double> with(const Sampling& sampling) { return probabilities(logits, sampling); }
}  // namespace

TEST_CASE("greedy decoding takes the first of the largest logits") {
  CHECK(greedy(logits) == 1);
  CHECK(greedy(std::vector<double>{2, 5, 5}) == 1);
  CHECK(with({.temperature = 0}) == std::vector<double>{0, 1, 0, 0});
}

TEST_CASE("rejects a sampler with invalid options at construction") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(Sampler({.temperature = nan}, 1),
                    Catch::Contains("temperature is nan") && Catch::Contains("[decoding_options]"));
  CHECK_THROWS_WITH(Sampler({.top_k = -1}, 1), Catch::Contains("top_k is -1"));
  CHECK_NOTHROW(Sampler({.temperature = 0}, 1));
}

TEST_CASE("temperature, top-k and top-p keep the tokens of their definitions") {
  CHECK(with({})[3] == Approx(0.3));
  const auto cold = with({.temperature = 0.5});
  CHECK(cold[1] == Approx(0.16 / 0.30));
  const auto two = with({.top_k = 2});
  CHECK(two[0] == 0);
  CHECK(two[2] == 0);
  CHECK(two[1] == Approx(4.0 / 7));
  const auto nucleus = with({.top_p = 0.65});  // 0.4 + 0.3 reach it
  CHECK(nucleus[2] == 0);
  CHECK(nucleus[3] == Approx(3.0 / 7));
  CHECK(with({.top_p = 0.75})[2] == Approx(0.2 / 0.9));
  CHECK(with({.top_p = 1e-9})[1] == 1);
  CHECK(probabilities(std::vector<double>{1, 1, 1}, {.top_k = 2})[2] == 0);
}

TEST_CASE("repetition penalty, temperature, top-k, top-p and min-p apply in the order of transformers") {
  // min_p compares with the most likely token after the temperature: 0.1 / 0.4 is below 0.3, its root is not.
  CHECK(with({.min_p = 0.3})[0] == 0);
  CHECK(with({.min_p = 0.3})[2] == Approx(0.2 / 0.9));
  CHECK(with({.temperature = 2, .min_p = 0.3})[0] > 0);
  // top_p applies to the mass that top_k leaves: 0.4 of 0.7 reaches 0.55, 0.4 of 1 does not.
  CHECK(with({.top_k = 2, .top_p = 0.55})[1] == 1);
  CHECK(with({.top_p = 0.55})[3] > 0);
  // The most likely token is always kept.
  CHECK(with({.min_p = 1})[1] == 1);
  std::vector<double> some{2, -2, 1};
  penalize_repetition(some, std::vector<std::int64_t>{0, 1, 1, 7, -1}, 2);
  CHECK(some == std::vector<double>{1, -4, 1});
  // 2 / 4 is less likely than 1.
  Sampler sampler({.repetition_penalty = 4, .temperature = 0}, 1);
  CHECK(sampler.next(std::vector<double>{2, -2, 1}, std::vector<std::int64_t>{0}) == 2);
  CHECK_THROWS_AS(with({.repetition_penalty = 0}), UserError);
  CHECK_THROWS_AS(with({.min_p = 1.5}), UserError);
  // A long tail is ranked like a short one.
  std::vector<double> tail(1000);
  for (std::size_t i = 0; i < tail.size(); ++i) tail[i] = -0.01 * static_cast<double>((i * 619) % 1000);
  const auto top = candidates(tail, {.top_k = 300});
  REQUIRE(top.size() == 300);
  for (std::size_t i = 0; i + 1 < top.size(); ++i) CHECK(top[i].probability >= top[i + 1].probability);
}

TEST_CASE("a sampler draws from its distribution and resumes from its count") {
  Sampler sampler({}, 11);
  std::map<std::int64_t, int> counts;
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < 4000; ++i) drawn.push_back(sampler.next(logits));
  for (const auto token : drawn) ++counts[token];
  CHECK(counts[0] / 4000.0 == Approx(0.1).margin(0.02));
  CHECK(counts[1] / 4000.0 == Approx(0.4).margin(0.03));
  CHECK(counts[3] / 4000.0 == Approx(0.3).margin(0.03));
  Sampler resumed({}, 11, 1000);
  for (std::size_t i = 1000; i < 1100; ++i) CHECK(resumed.next(logits) == drawn[i]);
}

TEST_CASE("impossible tokens are never drawn, and invalid input is an error") {
  const double never = -std::numeric_limits<double>::infinity(), nan = std::nan("");
  Sampler sampler({.temperature = 100}, 1);
  for (int i = 0; i < 200; ++i) CHECK(sampler.next(std::vector<double>{never, 0, never, 1}) % 2 == 1);
  CHECK_THROWS_AS(greedy(std::vector<double>{}), UserError);
  CHECK_THROWS_AS(greedy(std::vector<double>{1, nan}), UserError);
  CHECK_THROWS_AS(greedy(std::vector<double>{nan, 1}), UserError);
  CHECK_THROWS_AS(greedy(std::vector<double>{never, never}), UserError);
  CHECK_THROWS_AS(with({.temperature = -1}), UserError);
  CHECK_THROWS_AS(with({.top_p = 0}), UserError);
  CHECK_THROWS_AS(with({.top_p = nan}), UserError);
  const HostTensor rows = HostTensor::from({1, 2, 2}, {1, 2, 3, 4});
  CHECK(logits_row(rows, 1) == std::vector<double>{3, 4});
  CHECK_THROWS_AS(logits_row(rows, 2), UserError);
}
