#include "ir/tensor/mesh/collective_window.h"

#include <algorithm>

namespace lathe::ir {

namespace {

using ByTime = std::vector<CollectiveTimes*>;

ByTime sorted(std::vector<CollectiveTimes>& collectives, int CollectiveTimes::* time) {
  ByTime order;
  for (CollectiveTimes& each : collectives) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [&](const CollectiveTimes* each) { return each->*time; });
  return order;
}

std::int64_t largest(const std::vector<CollectiveTimes>& collectives) {
  std::int64_t most = 0;
  for (const CollectiveTimes& each : collectives) most = std::max(most, each.bytes);
  return most;
}

/// Bytes of gathered values that are live at each step.
class BytesByStep {
 public:
  explicit BytesByStep(const std::vector<CollectiveTimes>& gathers) {
    int end = 0;
    for (const CollectiveTimes& each : gathers) end = std::max(end, last_of(each) + 1);
    bytes_.resize(static_cast<std::size_t>(end));
  }

  static int last_of(const CollectiveTimes& gather) { return std::max(gather.done, gather.last); }

  /// Adds a value from step `from` to its last reader.
  void add(const CollectiveTimes& gather, int from) {
    for (int step = from; step <= last_of(gather); ++step) bytes_[step] += gather.bytes;
  }
  std::int64_t operator[](int step) const { return bytes_[step]; }
  std::int64_t most() const { return bytes_.empty() ? 0 : std::ranges::max(bytes_); }

 private:
  std::vector<std::int64_t> bytes_;
};

/// Returns the maximum bytes of gathered values, in use and prefetched.
std::int64_t most_with_prefetch(const ByTime& order, const BytesByStep& used) {
  std::int64_t most = used.most();
  for (std::size_t k = 1; k < order.size(); ++k) {
    std::size_t before = k - 1;
    while (before > 0 && order[before]->bytes < order[k]->bytes / 100) --before;
    const int step = order[before]->done;
    std::int64_t bytes = used[step];
    for (std::size_t next = before + 1; next <= k; ++next)
      if (order[next]->done > step) bytes += order[next]->bytes;
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

void limit_prefetch(std::vector<CollectiveTimes>& gathers) {
  const std::int64_t most_ahead = largest(gathers);
  const ByTime order = sorted(gathers, &CollectiveTimes::done);
  BytesByStep used(gathers), held(gathers);
  for (const CollectiveTimes& each : gathers) used.add(each, each.done);
  const std::int64_t most = most_with_prefetch(order, used);
  std::int64_t ahead = 0;
  int room = 0;  // first step with room
  for (std::size_t k = 0, unread = 0; k < order.size(); ++k) {
    CollectiveTimes& gather = *order[k];
    for (ahead += gather.bytes; ahead > most_ahead; ++unread) {
      ahead -= order[unread]->bytes;
      room = std::max(room, order[unread]->done);
    }
    int start = gather.done;
    while (start > std::max(gather.start, room) && held[start - 1] + gather.bytes <= most) --start;
    gather.start = std::max(gather.start, start);
    held.add(gather, gather.start);
  }
}

void limit_backlog(std::vector<CollectiveTimes>& scatters) {
  const std::int64_t most = largest(scatters);
  const ByTime order = sorted(scatters, &CollectiveTimes::start);
  std::int64_t under_way = 0;
  for (std::size_t k = 0, first = 0; k < order.size(); ++k)
    for (under_way += order[k]->bytes; under_way > most; ++first) {
      under_way -= order[first]->bytes;
      order[first]->done = std::min(order[first]->done, order[k]->start);
    }
}

}  // namespace lathe::ir
