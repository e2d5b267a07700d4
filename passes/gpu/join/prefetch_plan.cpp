#include "passes/gpu/join/prefetch_plan.h"

#include <algorithm>

namespace lathe::gpu {

namespace {
constexpr std::int64_t least_bytes = 4096;  ///< of a prefetch, unless it is the rest of a buffer
}  // namespace

/// Returns how many of the next elements of a stream fit the window now: all that are left, or whole pages. Rows are
/// prefetched all at once, when there is room for them.
std::int64_t PrefetchPlan::next_count(const StreamedBuffer& stream) const {
  const std::int64_t left = stream.elements - next_element_, room = (window_ - ahead_) / stream.element_bytes;
  if (room >= left) return left;
  const std::int64_t unit = least_bytes / stream.element_bytes;
  return stream.rows ? 0 : room / unit * unit;
}

std::vector<PrefetchPlan::Range> PrefetchPlan::before(int phase) {
  // Earlier phases have read their weights, whether prefetched or not.
  for (; unread_ < streams_.size() && streams_[unread_].phase < phase; ++unread_) {
    const StreamedBuffer& read = streams_[unread_];
    if (unread_ < next_) ahead_ -= read.elements * read.element_bytes;
    if (unread_ == next_) ahead_ -= next_element_ * read.element_bytes;
  }
  if (next_ < unread_) next_ = unread_, next_element_ = 0;
  std::vector<Range> ranges;
  while (next_ < streams_.size()) {
    const StreamedBuffer& stream = streams_[next_];
    const std::int64_t count = next_count(stream);
    if (count == 0 && stream.elements > 0) break;
    if (count > 0) ranges.push_back({stream.buffer, next_element_, count, stream.rows});
    ahead_ += count * stream.element_bytes;
    next_element_ += count;
    if (next_element_ < stream.elements) break;
    ++next_, next_element_ = 0;
  }
  return ranges;
}

}  // namespace lathe::gpu
