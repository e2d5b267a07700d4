#pragma once

#include <map>
#include <vector>

namespace lathe {

/// Finds the fastest of some tuning candidates by noisy timings: successive halving. In a heat each gets five turns
/// (more where they are short), one after the other and every time in another order. A candidate is judged by the
/// median of its times as shares of the default's in the same rounds, so that a slow moment, which hits both, does
/// not count. The slower half goes; those that are far behind go at once. The last challenger meets candidate 0, the
/// default, in a final of fresh timings, and wins if it is 2% better.
class CandidateRace {
 public:
  explicit CandidateRace(int candidates);

  bool finished() const { return racing_.size() < 2; }
  /// Whose turn it is; 0 once finished.
  int next();
  /// A timing. Those of candidates that are out do not count.
  void add(int candidate, double seconds);

  /// When finished: the fastest, and its time as a share of the default's.
  int winner() const { return winner_; }
  double ratio() const { return ratio_; }

 private:
  void close_heat();
  double median_ratio(int candidate) const;  ///< of its times to the default's of the same rounds
  bool is_hopeless(int candidate) const;

  std::vector<int> racing_;  // 0 first
  std::map<int, std::vector<double>> heat_;
  std::size_t turn_ = 0;
  int winner_ = 0;
  double ratio_ = 1;
};

}  // namespace lathe
