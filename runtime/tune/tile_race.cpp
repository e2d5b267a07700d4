#include "runtime/tune/tile_race.h"

#include <algorithm>
#include <numeric>

namespace lathe {

namespace {

constexpr double hopeless = 1.3, slower = 1.02, worth = 0.98;  // of the default's time
constexpr std::size_t heat_turns = 3, final_turns = 9, more = 8;
constexpr double short_seconds = 2e-3;  // a heat of kernels that take less in all has up to `more` times the turns

}  // namespace

TileRace::TileRace(int candidates) {
  for (int c = 0; c < candidates; ++c) racing_.push_back(c);
}

int TileRace::next() {
  if (finished()) return 0;
  const std::size_t n = racing_.size(), round = turn_ / n;
  return racing_[(turn_++ + round) % n];
}

double TileRace::median(int candidate) const {
  std::vector<double> times = heat_.at(candidate);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void TileRace::add(int candidate, double seconds) {
  if (finished() || std::find(racing_.begin(), racing_.end(), candidate) == racing_.end()) return;
  heat_[candidate].push_back(seconds);
  const auto fastest = [this](int c) { return *std::min_element(heat_.at(c).begin(), heat_.at(c).end()); };
  if (heat_.contains(0))
    std::erase_if(racing_, [&](int c) { return heat_.contains(c) && fastest(c) > hopeless * fastest(0); });
  std::size_t turns = racing_.size() == 2 ? final_turns : heat_turns;
  if (heat_.contains(0) && std::accumulate(heat_[0].begin(), heat_[0].end(), 0.0) < short_seconds) turns *= more;
  const auto done = [&](int c) { return heat_.contains(c) && heat_.at(c).size() >= turns; };
  if (std::all_of(racing_.begin(), racing_.end(), done)) close_heat();
}

void TileRace::close_heat() {
  const double standard = median(0);
  if (racing_.size() == 2 && median(racing_[1]) < worth * standard) {
    winner_ = racing_[1];
    ratio_ = median(winner_) / standard;
  }
  std::vector<int> challengers(racing_.begin() + 1, racing_.end());
  std::sort(challengers.begin(), challengers.end(), [this](int a, int b) { return median(a) < median(b); });
  challengers.resize(racing_.size() == 2 ? 0 : (challengers.size() + 1) / 2);
  std::erase_if(challengers, [&](int c) { return median(c) > slower * standard; });
  racing_ = {0};
  racing_.insert(racing_.end(), challengers.begin(), challengers.end());
  heat_.clear();
  turn_ = 0;
}

}  // namespace lathe
