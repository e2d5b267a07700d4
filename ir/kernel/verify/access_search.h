#pragma once

#include <optional>
#include <span>

#include "ir/kernel/verify/access_site.h"

namespace lathe::kernel {

/// Tells of one element after the other whether a site stores to it, or loads it, in a launch with given dims: by
/// halving the ranges of what counts around it, of which those are dropped that cannot lead there. Most searches look
/// at some hundred ranges, whatever the sizes.
class AccessSearch {
 public:
  AccessSearch(const AccessSite& site, std::span<const std::int64_t> dims);

  /// `open`: data decide, or the budget is used up.
  enum class Answer : std::uint8_t { no, open, yes };
  /// `budget`: how many ranges may be looked at; less what it took.
  Answer reaches(std::int64_t wanted, std::int64_t& budget);

  /// An element that the site reaches where the counters from number `from` on stand at their ends and those before
  /// anywhere, as `random` says; nothing where nothing runs there, or data decide which element it is.
  struct Reached {
    std::int64_t element;
    bool certain;  ///< false: data decide whether it does
  };
  std::optional<Reached> at_end(std::size_t from, std::uint64_t random);

  /// Whether some element that the site reaches may be outside of [0, elements): looks at one range.
  bool may_leave(std::int64_t elements);

  std::size_t counters() const { return counters_.size(); }

 private:
  struct Counter {
    std::size_t first_step = 0;  ///< the first step behind the counter before it
    Range limit;                 ///< the part that is looked at
    Range found;                 ///< of that what the bounds allow
    bool certain = true;         ///< no condition and no bound before it is open
  };

  bool runs(const AccessSite::Step& step);
  bool run();
  void limit(std::size_t counter, const Range& range);
  void limit_none();
  bool may_reach(std::int64_t wanted);
  Answer search(std::int64_t wanted, std::int64_t& budget);
  Answer search_halves(std::size_t counter, std::int64_t wanted, std::int64_t& budget);
  void go_to_end(std::size_t counter);
  const Range& element() const { return site_.slots[static_cast<std::size_t>(site_.element)]; }

  AccessSite site_;  ///< bound to the dims
  std::vector<Counter> counters_;
  std::size_t fresh_ = 0;  ///< what counters before this one give is known for the present limits
  bool has_run_ = false;
  std::size_t at_ = 0;   ///< while steps run: the next counter
  bool certain_ = true;  ///< the same: no condition and no bound so far is open
};

}  // namespace lathe::kernel
