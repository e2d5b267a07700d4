#include "passes/fusion/schedule_order.h"

#include <queue>
#include <set>

namespace lathe {

void order_regions(FusionPlan& plan, const std::vector<std::vector<Read>>& reads) {
  const std::size_t n = plan.regions.size();
  std::vector<std::set<int>> readers(n);
  std::vector<int> waiting(n, 0);
  for (std::size_t r = 0; r < n; ++r)
    for (const ir::ValueId member : plan.regions[r].members)
      for (const Read& read : reads[static_cast<std::size_t>(member.index)]) {
        const int from = plan.region(read.value);
        if (from >= 0 && from != static_cast<int>(r) &&
            readers[static_cast<std::size_t>(from)].insert(static_cast<int>(r)).second)
          ++waiting[r];
      }
  // Ready regions run in the order of their first member: forward before backward, as the graph was written.
  using Entry = std::pair<std::int32_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int r) {
    ready.emplace(plan.regions[static_cast<std::size_t>(r)].members.back().index, r);
  };
  for (std::size_t r = 0; r < n; ++r)
    if (waiting[r] == 0) push(static_cast<int>(r));
  std::vector<Region> ordered;
  std::vector<int> position(n, -1);
  while (!ready.empty()) {
    const int r = ready.top().second;
    ready.pop();
    position[static_cast<std::size_t>(r)] = static_cast<int>(ordered.size());
    ordered.push_back(std::move(plan.regions[static_cast<std::size_t>(r)]));
    for (const int reader : readers[static_cast<std::size_t>(r)])
      if (--waiting[static_cast<std::size_t>(reader)] == 0) push(reader);
  }
  LATHE_ASSERT(ordered.size() == n);
  plan.regions = std::move(ordered);
  for (int& r : plan.region_of)
    if (r >= 0) r = position[static_cast<std::size_t>(r)];
}

}  // namespace lathe
