#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "runtime/tune/tile_race.h"

/// Choosing between candidates by noisy timings.
using namespace lathe;

namespace {

/// Runs a race on a clock. Returns how often each candidate was timed.
std::map<int, int> run(CandidateRace& race, const std::function<double(int)>& clock) {
  std::map<int, int> turns;
  for (int turn = 0; turn < 1000 && !race.finished(); ++turn) {
    const int candidate = race.next();
    ++turns[candidate];
    race.add(candidate, clock(candidate));
  }
  CHECK(race.finished());
  return turns;
}

}  // namespace

TEST_CASE("race: the fastest wins, slow candidates run few times") {
  CandidateRace race(6);
  const auto turns =
      run(race, [](int c) { return std::array{1.0, 1.1, 0.9, 2.0, 0.95, 1.0}.at(static_cast<std::size_t>(c)); });
  CHECK(race.winner() == 2);
  CHECK(race.ratio() == Approx(0.9));
  CHECK(turns.at(3) == 2);
  CHECK(turns.at(2) > turns.at(1));
  CHECK(turns.at(0) >= turns.at(2));
}

TEST_CASE("race: a gain below 2 percent keeps the default") {
  for (const double other : {0.985, 1.0, 1.01, 1.2, 9.0}) {
    CandidateRace race(2);
    run(race, [&](int c) { return c == 0 ? 1 : other; });
    CHECK(race.winner() == 0);
    CHECK(race.ratio() == 1);
  }
}

TEST_CASE("race: a single candidate is decided immediately") {
  CHECK(CandidateRace(1).finished());
  CHECK(CandidateRace(1).winner() == 0);
  CandidateRace late(2);
  late.add(5, 0.1);  // not a candidate
  CHECK_FALSE(late.finished());
}

TEST_CASE("race: slow periods and outliers do not decide") {
  int missed = 0, worse = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    int turn = 0;
    CandidateRace race(8);
    run(race, [&](int c) {
      const double weather = turn++ / 20 % 3 == 0 ? 1.25 : 1.0;  // slow for a while
      const double spike = random() % 10 == 0 ? 1.8 : 1.0;
      return (c == 5 ? 0.9 : 1.0 + 0.01 * c) * weather * spike * (1 + 0.01 * static_cast<double>(random() % 3));
    });
    missed += race.winner() == 0;
    worse += race.winner() != 0 && race.winner() != 5;
  }
  CHECK(missed <= 20);  // then the default is kept
  CHECK(worse <= 2);
}

TEST_CASE("race: each round runs every candidate once, with a rotating first candidate") {
  CandidateRace race(3);
  std::set<int> first;
  for (int round = 0; round < 3; ++round) {
    std::set<int> seen;
    for (int i = 0; i < 3; ++i) {
      const int candidate = race.next();
      if (i == 0) first.insert(candidate);
      seen.insert(candidate);
    }
    CHECK(seen.size() == 3);
  }
  CHECK(first.size() == 3);
}
