#include "ir/tensor/exchange_window.h"

#include <algorithm>

namespace lathe::ir {

namespace {

using ByTime = std::vector<ExchangeTimes*>;

ByTime sorted(std::vector<ExchangeTimes>& exchanges, int ExchangeTimes::* time) {
  ByTime order;
  for (ExchangeTimes& each : exchanges) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [&](const ExchangeTimes* each) { return each->*time; });
  return order;
}

std::int64_t largest(const std::vector<ExchangeTimes>& exchanges) {
  std::int64_t most = 0;
  for (const ExchangeTimes& each : exchanges) most = std::max(most, each.bytes);
  return most;
}

}  // namespace

void limit_prefetch(std::vector<ExchangeTimes>& gathers) {
  const std::int64_t most = largest(gathers);
  const ByTime order = sorted(gathers, &ExchangeTimes::done);
  std::int64_t ahead = 0;
  int room = 0;  // from when on there is some
  for (std::size_t k = 0, unread = 0; k < order.size(); ++k) {
    for (ahead += order[k]->bytes; ahead > most; ++unread) {
      ahead -= order[unread]->bytes;
      room = std::max(room, order[unread]->done);
    }
    order[k]->start = std::max(order[k]->start, room);
  }
}

void limit_backlog(std::vector<ExchangeTimes>& scatters) {
  const std::int64_t most = largest(scatters);
  const ByTime order = sorted(scatters, &ExchangeTimes::start);
  std::int64_t under_way = 0;
  for (std::size_t k = 0, first = 0; k < order.size(); ++k)
    for (under_way += order[k]->bytes; under_way > most; ++first) {
      under_way -= order[first]->bytes;
      order[first]->done = std::min(order[first]->done, order[k]->start);
    }
}

}  // namespace lathe::ir
