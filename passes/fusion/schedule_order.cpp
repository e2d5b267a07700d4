#include "passes/fusion/schedule_order.h"

#include <queue>
#include <set>

namespace lathe {

using namespace ir;

namespace {

/// Who must run before whom.
class Order {
 public:
  Order(const FusionPlan& plan, const std::vector<std::vector<Read>>& reads) : after_(plan.regions.size()) {
    for (std::size_t r = 0; r < plan.regions.size(); ++r)
      for (const ValueId member : plan.regions[r].members)
        for (const Read& read : reads[static_cast<std::size_t>(member.index)])
          add(plan.region(read.value), static_cast<int>(r));
  }

  void add(int first, int then) {
    if (first >= 0 && first != then) after_[static_cast<std::size_t>(first)].insert(then);
  }

  bool precedes(int first, int then) const {
    std::vector<bool> seen(after_.size(), false);
    std::vector<int> work = {first};
    while (!work.empty()) {
      const int r = work.back();
      work.pop_back();
      if (r == then) return true;
      if (seen[static_cast<std::size_t>(r)]) continue;
      seen[static_cast<std::size_t>(r)] = true;
      for (const int next : after_[static_cast<std::size_t>(r)]) work.push_back(next);
    }
    return false;
  }

  const std::set<int>& after(int r) const { return after_[static_cast<std::size_t>(r)]; }
  std::size_t size() const { return after_.size(); }

 private:
  std::vector<std::set<int>> after_;
};

/// Puts the readers of each updated state before the region that computes its new value, where that makes no cycle.
void readers_before_updates(FusionPlan& plan, const Graph& graph, const std::vector<std::vector<Read>>& reads,
                            Order& order) {
  std::vector<std::set<int>> readers(graph.nodes.size());
  for (const ValueId id : all_values(graph))
    for (const Read& read : reads[static_cast<std::size_t>(id.index)])
      readers[static_cast<std::size_t>(read.value.index)].insert(plan.region(id));
  plan.last_reader_first.clear();
  for (const Update& update : graph.updates) {
    const int writer = plan.region(update.value);
    bool possible = writer >= 0;
    for (const int reader : readers[static_cast<std::size_t>(update.state.index)])
      possible = possible && (reader == writer || !order.precedes(writer, reader));
    if (possible)
      for (const int reader : readers[static_cast<std::size_t>(update.state.index)]) order.add(reader, writer);
    plan.last_reader_first.push_back(possible);
  }
}

}  // namespace

void order_regions(FusionPlan& plan, const Graph& graph, const std::vector<std::vector<Read>>& reads) {
  Order order(plan, reads);
  readers_before_updates(plan, graph, reads, order);
  const std::size_t n = plan.regions.size();
  std::vector<int> waiting(n, 0);
  for (std::size_t r = 0; r < n; ++r)
    for (const int next : order.after(static_cast<int>(r))) ++waiting[static_cast<std::size_t>(next)];
  // Ready regions run in the order of their last member: forward before backward, as the graph was written. What is
  // added to in place counts as the sum: made just before it, it takes no room meanwhile.
  using Entry = std::pair<std::int32_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int r) {
    const ValueId last = plan.regions[static_cast<std::size_t>(r)].members.back();
    ready.emplace(plan.placement[static_cast<std::size_t>(last.index)].base.index, r);
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
    for (const int next : order.after(r))
      if (--waiting[static_cast<std::size_t>(next)] == 0) push(next);
  }
  LATHE_ASSERT(ordered.size() == n);
  plan.regions = std::move(ordered);
  for (int& r : plan.region_of)
    if (r >= 0) r = position[static_cast<std::size_t>(r)];
}

}  // namespace lathe
