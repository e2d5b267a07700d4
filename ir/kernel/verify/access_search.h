#pragma once

#include <optional>
#include <span>

#include "ir/kernel/verify/access_site.h"

namespace lathe::kernel {

/// Answers, element by element, whether a site stores to or loads an element in a launch with given dims. Halves the
/// ranges of the surrounding counters and drops those that cannot reach the element. Most searches examine a few
/// hundred ranges, independent of sizes.
class AccessSearch {
 public:
  AccessSearch(const AccessSite& site, std::span<const std::int64_t> dims);

  /// `open`: the answer depends on data, or the budget is exhausted.
  enum class Answer : std::uint8_t { no, open, yes };
  /// `budget`: maximum number of ranges to examine; decreased by the number examined.
  Answer reaches(std::int64_t wanted, std::int64_t& budget);

  /// Returns an element that the site reaches with the counters from number `from` at their last index, and earlier
  /// ones at indices chosen by `random`. Returns nothing if no execution gets there, or the element depends on data.
  struct Reached {
    std::int64_t element;
    bool certain;  ///< false: whether it is reached depends on data
  };
  std::optional<Reached> at_end(std::size_t from, std::uint64_t random);

  /// Returns whether the site may reach an element outside [0, elements). Examines one range.
  bool may_leave(std::int64_t elements);

  std::size_t counters() const { return counters_.size(); }

 private:
  struct Counter {
    std::size_t first_step = 0;  ///< first step after the previous counter
    Range limit;                 ///< the part to examine
    Range found;                 ///< the part of `limit` that the bounds allow
    bool certain = true;         ///< no earlier condition or bound is open
  };

  bool runs(const AccessSite::Step& step);
  bool run();
  void limit(std::size_t counter, const Range& range);
  void limit_none();
  bool may_reach(std::int64_t wanted);
  Answer search(std::int64_t wanted, std::int64_t& budget);
  Answer search_halves(std::size_t counter, std::int64_t wanted, std::int64_t& budget);
  void go_to_end(std::size_t counter);
  const Range& element() const { return site_.slots[site_.element]; }

  AccessSite site_;  ///< bound to the dims
  std::vector<Counter> counters_;
  std::size_t fresh_ = 0;  ///< results of counters before this one are valid for the current limits
  bool has_run_ = false;
  std::size_t at_ = 0;   ///< while steps run: index of the next counter
  bool certain_ = true;  ///< while steps run: no condition or bound so far is open
};

}  // namespace lathe::kernel
