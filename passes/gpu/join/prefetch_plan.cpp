#include "passes/gpu/join/prefetch_plan.h"

#include <algorithm>

namespace lathe::gpu {

namespace {
constexpr std::int64_t least_bytes = 4096;  ///< of a prefetch, unless it is the rest of a buffer
}  // namespace

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
    const std::int64_t left = stream.elements - next_element_, room = (window_ - ahead_) / stream.element_bytes;
    if (room < left && room * stream.element_bytes < least_bytes) break;
    const std::int64_t unit = least_bytes / stream.element_bytes;
    const std::int64_t count = room < left ? room / unit * unit : left;
    if (count > 0) ranges.push_back({stream.buffer, next_element_, count});
    ahead_ += count * stream.element_bytes;
    next_element_ += count;
    if (next_element_ < stream.elements) break;
    ++next_, next_element_ = 0;
  }
  return ranges;
}

}  // namespace lathe::gpu
