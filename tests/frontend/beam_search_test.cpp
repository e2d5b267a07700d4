#include "frontend/decode/beam_search.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "ir/support/error.h"

using namespace lathe;

namespace {

using Tokens = std::vector<std::int64_t>;

/// Next-token probabilities for three tokens, by the previous token; the last token ends a sequence.
NextLogits chain(const std::vector<std::vector<double>>& probabilities) {
  return [=, before = std::vector<Tokens>()](std::span<const Tokens> sequences,
                                             std::span<const std::int64_t> parents) mutable {
    std::vector<std::vector<double>> rows;
    REQUIRE(parents.size() == sequences.size());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const Tokens parent(sequences[i].begin(), sequences[i].end() - 1);
      if (parent.empty())
        CHECK(parents[i] == static_cast<std::int64_t>(i));
      else
        CHECK(before.at(static_cast<std::size_t>(parents[i])) == parent);
    }
    before.assign(sequences.begin(), sequences.end());
    for (const Tokens& tokens : sequences) {
      std::vector<double> row;
      for (const double p : probabilities[static_cast<std::size_t>(tokens.back())]) row.push_back(std::log(p));
      rows.push_back(row);
    }
    return rows;
  };
}

const std::vector<std::vector<double>> garden{{0.05, 0.55, 0.4}, {0.45, 0.45, 0.1}, {0.3, 0.3, 0.4}};

}  // namespace

TEST_CASE("beam search: a sequence with a less likely prefix can be the most likely") {
  // Greedy search picks 1, after which every continuation is unlikely.
  const auto found = beam_search({0}, {.width = 3, .results = 2, .longest = 2, .end_tokens = {2}}, chain(garden));
  REQUIRE(found.size() == 2);
  CHECK(found[0].tokens == Tokens{0, 1, 0});
  CHECK(found[0].score == Approx((std::log(0.55) + std::log(0.45)) / 2));
  CHECK(found[1].tokens == Tokens{0, 1, 1});
  const auto short_ones =
      beam_search({0}, {.width = 3, .longest = 2, .length_penalty = 0, .end_tokens = {2}}, chain(garden));
  CHECK(short_ones[0].tokens == Tokens{0, 2});
  CHECK(short_ones[0].score == Approx(std::log(0.4)));
}

TEST_CASE("beam search: early stopping returns the first finished sequences") {
  const auto score = [](BeamOptions::EarlyStopping early) {
    BeamOptions options{.width = 1, .longest = 12, .length_penalty = 2, .early_stopping = early, .end_tokens = {2}};
    const auto found = beam_search({0}, options, chain({{0.1, 0.3, 0.6}, {0.5, 0.4, 0.1}, {0.3, 0.3, 0.4}}));
    REQUIRE(found.size() == 1);
    return found[0];
  };
  using EarlyStopping = BeamOptions::EarlyStopping;
  CHECK(score(EarlyStopping::yes).tokens == Tokens{0, 2});
  CHECK(score(EarlyStopping::no).tokens == Tokens{0, 2});
  CHECK(score(EarlyStopping::never).tokens.size() > 2);
  CHECK(score(EarlyStopping::never).score > score(EarlyStopping::yes).score);
}

TEST_CASE("beam search: rejects options and rows out of range") {
  const NextLogits one_row = [](auto, auto) { return std::vector<std::vector<double>>{{0.0, 1.0}}; };
  CHECK_THROWS_WITH(beam_search({0}, {.width = 0}, one_row), Catch::Contains("[decoding_options]"));
  CHECK_THROWS_WITH(beam_search({0}, {.width = 2, .results = 3}, one_row), Catch::Contains("[decoding_options]"));
  CHECK_THROWS_WITH(beam_search({0}, {.width = 2}, one_row), Catch::Contains("[decoding_row]"));
}
