#include "ir/kernel/verify/access_search.h"

#include <algorithm>

#include "ir/kernel/verify/access_binding.h"

namespace lathe::kernel {

namespace {

using Step = AccessSite::Step;

/// Returns the part of `limit` that a loop from lo to hi (exclusive) may reach. If lo and step are known, both ends
/// are indices of the loop.
Range loop_range(const Range& lo, const Range& hi, const Range& step, const Range& limit) {
  Range r{std::max(lo.lo, limit.lo), std::min(hi.hi == INT64_MIN ? hi.hi : hi.hi - 1, limit.hi)};
  if (r.lo > r.hi || !lo.is_one() || !step.is_one() || step.lo <= 1) return r;
  const auto start = static_cast<std::uint64_t>(lo.lo), by = static_cast<std::uint64_t>(step.lo);
  const std::uint64_t first = (static_cast<std::uint64_t>(r.lo) - start + by - 1) / by,
                      last = (static_cast<std::uint64_t>(r.hi) - start) / by;
  if (first > last) return {0, -1};
  return {static_cast<std::int64_t>(start + first * by), static_cast<std::int64_t>(start + last * by)};
}

std::int64_t middle(const Range& r) {
  return r.lo + static_cast<std::int64_t>((static_cast<std::uint64_t>(r.hi) - static_cast<std::uint64_t>(r.lo)) / 2);
}

std::int64_t any_of(const Range& r, std::uint64_t random) {
  const std::uint64_t count = static_cast<std::uint64_t>(r.hi) - static_cast<std::uint64_t>(r.lo) + 1;
  const std::uint64_t mixed = random ^ (random >> 33);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(r.lo) + (count == 0 ? mixed : mixed % count));
}

}  // namespace

AccessSearch::AccessSearch(const AccessSite& site, std::span<const std::int64_t> dims) : site_(bind(site, dims)) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < site_.steps.size(); ++i) {
    if (!site_.steps[i].counts()) continue;
    counters_.push_back({.first_step = from, .limit = {}, .found = {}, .certain = true});
    from = i + 1;
  }
}

/// Returns false if no execution within the limits continues after this step.
inline bool AccessSearch::runs(const Step& s) {
  const auto at = [&](int slot) -> Range& { return site_.slots[slot]; };
  switch (s.kind) {
    case Step::Kind::apply:
    case Step::Kind::boolean: at(s.out) = result_of(s, site_.slots); return true;
    case Step::Kind::loop: {
      const Range &lo = at(s.a), &hi = at(s.b), &step = at(s.c);
      Counter& counter = counters_[at_++];
      at(s.out) = counter.found = loop_range(lo, hi, step, counter.limit);
      certain_ = certain_ && lo.is_one() && hi.is_one() && step.is_one();
      return counter.found.lo <= counter.found.hi;
    }
    case Step::Kind::count: {
      Counter& counter = counters_[at_++];
      at(s.out) =
          counter.found = {std::max<std::int64_t>(counter.limit.lo, 0), std::min(counter.limit.hi, at(s.a).lo - 1)};
      return counter.found.lo <= counter.found.hi;
    }
    case Step::Kind::holds:
    case Step::Kind::fails: {
      const Range& condition = at(s.a);
      certain_ = certain_ && (condition.is_one() || !condition.holds(0));
      return s.kind == Step::Kind::holds ? condition != Range{0, 0} : condition.holds(0);
    }
  }
  return true;
}

/// Runs the steps from the first counter whose limit changed. Returns false if no execution stays within the limits.
bool AccessSearch::run() {
  at_ = fresh_;
  if (at_ == counters_.size() && has_run_) return true;
  certain_ = at_ == 0 || counters_[at_].certain;
  for (std::size_t i = at_ < counters_.size() ? counters_[at_].first_step : 0; i < site_.steps.size(); ++i) {
    const Step& step = site_.steps[i];
    if (step.counts()) fresh_ = at_, counters_[at_].certain = certain_;
    if (!runs(step)) return false;
  }
  fresh_ = counters_.size();
  return has_run_ = true;
}

void AccessSearch::limit(std::size_t c, const Range& range) {
  counters_[c].limit = range;
  fresh_ = std::min(fresh_, c);
}

void AccessSearch::limit_none() {
  for (std::size_t c = 0; c < counters_.size(); ++c) limit(c, {});
}

bool AccessSearch::may_reach(std::int64_t wanted) { return run() && element().holds(wanted); }

bool AccessSearch::may_leave(std::int64_t elements) {
  limit_none();
  return run() && (element().lo < 0 || element().hi >= elements);
}

AccessSearch::Answer AccessSearch::reaches(std::int64_t wanted, std::int64_t& budget) {
  limit_none();
  --budget;
  return may_reach(wanted) ? search(wanted, budget) : Answer::no;
}

/// Searches within limits that may reach the element. Repeatedly halves every counter for which only one half may
/// reach it. If none remains, searches both halves of the first open counter.
AccessSearch::Answer AccessSearch::search(std::int64_t wanted, std::int64_t& budget) {
  const std::size_t count = counters_.size();
  std::optional<std::size_t> open;  // the first counter whose two halves may both reach it
  for (std::size_t c = 0, tried = 0; tried < count; c = (c + 1) % count, ++tried) {
    run();
    for (Range whole = counters_[c].found; !whole.is_one(); whole = counters_[c].found) {
      budget -= 2;
      if (budget < 0) return Answer::open;
      const Range kept = counters_[c].limit, low{whole.lo, middle(whole)}, high{low.hi + 1, whole.hi};
      limit(c, low);
      const bool in_low = may_reach(wanted);
      limit(c, high);
      const bool in_high = may_reach(wanted);
      if (!in_low && !in_high) return Answer::no;
      if (in_low && in_high) {
        limit(c, kept);
        if (!open) open = c;
        break;
      }
      if (in_low) limit(c, low);
      run();
      tried = 0;
      open.reset();
    }
  }
  if (open) return search_halves(*open, wanted, budget);
  run();
  return certain_ && element().is_one() ? Answer::yes : Answer::open;
}

AccessSearch::Answer AccessSearch::search_halves(std::size_t c, std::int64_t wanted, std::int64_t& budget) {
  run();
  const std::vector<Counter> kept = counters_;
  const Range whole = kept[c].found;
  const std::int64_t m = middle(whole);
  for (const Range half : {Range{whole.lo, m}, Range{m + 1, whole.hi}}) {
    for (std::size_t i = 0; i < kept.size(); ++i) limit(i, kept[i].limit);
    limit(c, half);
    const Answer answer = may_reach(wanted) ? search(wanted, budget) : Answer::no;
    if (answer != Answer::no) return answer;
  }
  return Answer::no;
}

/// Limits a counter to its last index that may run.
void AccessSearch::go_to_end(std::size_t c) {
  Range whole = counters_[c].found;
  limit(c, {whole.hi, whole.hi});
  if (run()) return;
  while (!whole.is_one()) {
    const std::int64_t m = middle(whole);
    limit(c, {m + 1, whole.hi});
    whole = run() ? counters_[c].found : Range{whole.lo, m};
  }
  limit(c, whole);
}

std::optional<AccessSearch::Reached> AccessSearch::at_end(std::size_t from, std::uint64_t random) {
  limit_none();
  for (std::size_t c = 0; c < counters_.size(); ++c) {
    if (!run()) return std::nullopt;
    if (c < from && !counters_[c].found.is_one()) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const Range whole = counters_[c].found;
      limit(c, {whole.lo, any_of(whole, random)});
      if (!run()) return std::nullopt;
    }
    go_to_end(c);
  }
  if (!run() || !element().is_one()) return std::nullopt;
  return Reached{element().lo, certain_};
}

}  // namespace lathe::kernel
