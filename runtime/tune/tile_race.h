#pragma once

#include <map>
#include <vector>

namespace lathe {

/// Finds the fastest tuning candidate from noisy timings, by successive halving. In a heat, each candidate gets five
/// turns (more if they are short), one candidate at a time, in a different order in each round. A candidate's score
/// is the median ratio of its times to the default's in the same rounds, so that slowdowns of the machine, which
/// affect both, cancel. The slower half is eliminated; candidates that are far behind are eliminated at once. The
/// last challenger competes with candidate 0, the default, in a final with new timings, and wins if it is 2% faster.
class CandidateRace {
 public:
  explicit CandidateRace(int candidates);

  bool finished() const { return racing_.size() < 2; }
  /// Returns the candidate to time next; 0 once finished.
  int next();
  /// Adds a timing. Timings of eliminated candidates are ignored.
  void add(int candidate, double seconds);

  /// After the end: the fastest candidate, and the ratio of its time to the default's.
  int winner() const { return winner_; }
  double ratio() const { return ratio_; }

 private:
  void close_heat();
  double median_ratio(int candidate) const;  ///< median ratio of its times to the default's in the same rounds
  bool is_hopeless(int candidate) const;

  std::vector<int> racing_;  // 0 first
  std::map<int, std::vector<double>> heat_;
  std::size_t turn_ = 0;
  int winner_ = 0;
  double ratio_ = 1;
};

}  // namespace lathe
