#include "runtime/tune/tile_race.h"

#include <algorithm>
#include <numeric>

namespace lathe {

namespace {

constexpr double hopeless = 1.3, slower = 1.02, worth = 0.98;  // relative to the default's time
constexpr std::size_t heat_turns = 5, final_turns = 11, more = 8;
constexpr double short_seconds = 2e-3;  // heats with a shorter total time get up to `more` times the turns

}  // namespace

CandidateRace::CandidateRace(int candidates) {
  for (int c = 0; c < candidates; ++c) racing_.push_back(c);
}

int CandidateRace::next() {
  if (finished()) return 0;
  const std::size_t n = racing_.size(), round = turn_ / n;
  return racing_[(turn_++ + round) % n];
}

double CandidateRace::median_ratio(int candidate) const {
  const std::vector<double>&standard = heat_.at(0), &times = heat_.at(candidate);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(times.size(), standard.size()); ++i) ratios.push_back(times[i] / standard[i]);
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

bool CandidateRace::is_hopeless(int candidate) const {
  const auto times = heat_.find(candidate), standard = heat_.find(0);
  if (times == heat_.end() || standard == heat_.end() || times->second.size() < 2) return false;
  return *std::min_element(times->second.begin(), times->second.end()) >
         hopeless * *std::max_element(standard->second.begin(), standard->second.end());
}

void CandidateRace::add(int candidate, double seconds) {
  if (finished() || std::find(racing_.begin(), racing_.end(), candidate) == racing_.end()) return;
  heat_[candidate].push_back(seconds);
  std::erase_if(racing_, [this](int c) { return is_hopeless(c); });
  std::size_t turns = racing_.size() == 2 ? final_turns : heat_turns;
  if (heat_.contains(0) && std::accumulate(heat_[0].begin(), heat_[0].end(), 0.0) < short_seconds) turns *= more;
  const auto done = [&](int c) { return heat_.contains(c) && heat_.at(c).size() >= turns; };
  if (std::all_of(racing_.begin(), racing_.end(), done)) close_heat();
}

void CandidateRace::close_heat() {
  if (racing_.size() == 2) {
    const double ratio = median_ratio(racing_[1]);
    if (ratio < worth) winner_ = racing_[1], ratio_ = ratio;
  }
  std::vector<int> challengers(racing_.begin() + 1, racing_.end());
  std::sort(challengers.begin(), challengers.end(),
            [this](int a, int b) { return median_ratio(a) < median_ratio(b); });
  challengers.resize(racing_.size() == 2 ? 0 : (challengers.size() + 1) / 2);
  std::erase_if(challengers, [&](int c) { return median_ratio(c) > slower; });
  racing_ = {0};
  racing_.insert(racing_.end(), challengers.begin(), challengers.end());
  heat_.clear();
  turn_ = 0;
}

}  // namespace lathe
