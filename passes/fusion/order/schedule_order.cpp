#include "passes/fusion/order/schedule_order.h"

#include <algorithm>
#include <queue>

#include "ir/support/containers/jagged_list.h"
#include "passes/fusion/order/online_order.h"
#include "passes/fusion/order/update_times.h"

namespace lathe {

using namespace ir;

namespace {

/// Which regions must run before which.
class Order {
 public:
  Order(const FusionPlan& plan, const NodeReads& reads)
      : after_(plan.regions.size()), before_(plan.regions.size()), online_(*this) {
    for (std::size_t r = 0; r < plan.regions.size(); ++r)
      for (const ValueId member : plan.regions[r].members)
        for (const Read& read : reads[member]) connect(plan.region(read.value), static_cast<int>(r));
    const std::vector<int> some = sorted();
    LATHE_ASSERT(some.size() == plan.regions.size());
    online_.append(some);
  }
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  void add(int first, int then) {
    if (connect(first, then)) online_.add(first, then);
  }

  /// Whether `then` must wait for `first`.
  bool precedes(int first, int then) const {
    return online_.depends({then}, first, [](int) { return false; });
  }

  /// Returns how many regions each one must wait for.
  std::vector<int> waiting() const {
    std::vector<int> count;
    for (const std::vector<int>& before : before_) count.push_back(static_cast<int>(before.size()));
    return count;
  }

  /// Returns an order in which they can run.
  std::vector<int> sorted() const {
    std::vector<int> result, left = waiting();
    for (int r = 0; r < static_cast<int>(left.size()); ++r)
      if (left[r] == 0) result.push_back(r);
    for (std::size_t i = 0; i < result.size(); ++i)
      for (const int next : after(result[i]))
        if (--left[next] == 0) result.push_back(next);
    return result;
  }

  /// Returns the regions that must wait for r, sorted.
  const std::vector<int>& after(int r) const { return after_[r]; }

  /// Interface for OnlineOrder.
  template <class F>
  void predecessors(int r, F&& f) const {
    for (const int first : before_[r]) f(first);
  }
  template <class F>
  void successors(int r, F&& f) const {
    for (const int then : after(r)) f(then);
  }
  std::size_t predecessor_count(int r) const { return before_[r].size(); }
  std::size_t successor_count(int r) const { return after(r).size(); }

 private:
  bool connect(int first, int then) {
    if (first < 0 || first == then) return false;
    std::vector<int>& after = after_[first];
    const auto found = std::lower_bound(after.begin(), after.end(), then);  // usually the end
    if (found != after.end() && *found == then) return false;
    after.insert(found, then);
    before_[then].push_back(first);
    return true;
  }

  std::vector<std::vector<int>> after_, before_;
  OnlineOrder<Order> online_;
};

/// Returns the regions that read each updated state, by node; nothing for all others.
JaggedList<int> readers_of_states(const FusionPlan& plan, const Graph& graph, const NodeReads& reads) {
  NodeMap<bool> updated(graph, false);
  for (const Update& update : graph.updates) updated[update.state] = true;
  return {graph.nodes.size(), [&](const auto& add) {
            for (const ValueId id : all_values(graph))
              for (const Read& read : reads[id])
                if (updated[read.value]) add(read.value.index, plan.region(id));
          }};
}

/// Puts the readers of each updated state before the region that computes its new value, unless that creates a cycle.
void readers_before_updates(const FusionPlan& plan, const Graph& graph, const NodeReads& reads, Order& order) {
  const JaggedList<int> readers = readers_of_states(plan, graph, reads);
  for (const Update& update : graph.updates) {
    const int writer = plan.region(update.value);
    bool possible = writer >= 0;
    for (const int reader : readers[update.state.index])
      possible = possible && (reader == writer || !order.precedes(writer, reader));
    if (possible)
      for (const int reader : readers[update.state.index]) order.add(reader, writer);
  }
}

/// Whether a region stores only sums of its inputs, and no value as large as its domain.
bool folds(const FusionPlan& plan, const Graph& graph, const Region& region) {
  if (region.kind() != RegionKind::columns && region.folded_dims() == 0) return false;
  const Dim points = region.domain.numel();
  return std::none_of(region.members.begin(), region.members.end(),
                      [&](ValueId id) { return plan.is_stored(id) && graph[id].type.shape.numel() == points; });
}

/// Ensures that no region runs later than those that wait for it.
void before_who_waits(const Order& order, const std::vector<int>& sorted, std::vector<std::int32_t>& at) {
  for (auto r = sorted.rbegin(); r != sorted.rend(); ++r)
    for (const int next : order.after(*r)) at[*r] = std::min(at[*r], at[next]);
}

/// Returns the desired position of each region in the graph: at its last member, with exceptions.
/// - A matmul runs at its contraction, or when the last input of its epilogue is available. A gradient that is used
///   in an optimizer's update is then summed as early as possible, and its inputs are freed.
/// - A region that only sums its inputs (a bias's gradient, a gradient's norm) runs when they are available, so that
///   they are freed.
/// - No region runs later than those that wait for it. The optimizer's scalars, which wait for nothing, run before
///   the first update.
/// - The base that a scatter_add adds to in place has the position of the sum: it is computed just before, so that it
///   uses no memory in the meantime.
std::vector<std::int32_t> positions(const FusionPlan& plan, const Graph& graph, const Order& order) {
  std::vector<std::int32_t> at(plan.regions.size(), 0), there(plan.regions.size(), 0);
  const std::vector<int> sorted = order.sorted(), waits = order.waiting();
  for (const int r : sorted) {
    const auto i = static_cast<std::size_t>(r);
    const Region& region = plan.regions[i];
    const ValueId last = region.members.back(), base = plan.placement[last].base;
    at[i] = base.index;
    if (region.kind() == RegionKind::product && base == last)
      at[i] = std::min(at[i], std::max(region.members.front().index, there[i]));
    if (there[i] > 0 && folds(plan, graph, region)) at[i] = std::min(at[i], there[i]);
    for (const int next : order.after(r))
      if (waits[i] > 0) there[next] = std::max(there[next], at[i]);
  }
  before_who_waits(order, sorted, at);
  return at;
}

/// Returns the position at which all inputs are available, by region.
std::vector<std::int32_t> made_positions(const Order& order, const std::vector<int>& sorted,
                                         const std::vector<std::int32_t>& at) {
  const std::vector<int> waits = order.waiting();
  std::vector<std::int32_t> made(at.size(), 0);
  for (const int r : sorted)
    for (const int next : order.after(r))
      if (waits[r] > 0) made[next] = std::max(made[next], at[r]);
  return made;
}

/// If a sum over processes takes long and little follows it, nothing would hide its communication. The matmuls that
/// only serve the sums just before it are therefore moved after the nodes that compute its input (Johnson 1954: of
/// jobs that are computed and then sent, those that take long to send are computed first). An example is the gradient
/// of embeddings.
void large_sum_first(const FusionPlan& plan, const Graph& graph, const Order& order, const std::vector<int>& sorted,
                     std::vector<std::int32_t>& at) {
  const std::vector<ProcessSum> sums = known_sums(plan, graph, made_positions(order, sorted, at));
  const auto large =
      std::find_if(sums.rbegin(), sums.rend(), [](const ProcessSum& sum) { return sum.bytes >= hiding_bytes(); });
  if (large == sums.rend()) return;
  std::int64_t behind = 0;
  for (auto sum = sums.rbegin(); sum != large; ++sum) behind += sum->bytes;
  std::vector<bool> waits(at.size(), false);
  for (auto sum = large + 1; sum != sums.rend() && behind + sum->bytes <= hiding_bytes(); ++sum) {
    behind += sum->bytes;
    waits[sum->region] = true;
  }
  for (auto r = sorted.rbegin(); r != sorted.rend(); ++r) {
    const auto i = static_cast<std::size_t>(*r);
    if (waits[i] || plan.regions[i].kind() != RegionKind::product || order.after(*r).empty()) continue;
    if (std::ranges::all_of(order.after(*r), [&](int next) { return waits[next]; })) at[i] = large->position + 1;
  }
}

/// Moves sums over processes forward to where their inputs are available. Moves updates that use them, and norms of
/// them, to where later sums hide the communication (update_times.h), with the values that are computed for updates
/// alone. New states that are gathered are gathered immediately.
void bring_updates_forward(const FusionPlan& plan, const Graph& graph, const Order& order,
                           std::vector<std::int32_t>& at) {
  const auto collectives = [](const Region& region) { return region.kind() == RegionKind::collective; };
  if (std::ranges::none_of(plan.regions, collectives)) return;
  const std::vector<int> sorted = order.sorted(), waits = order.waiting();
  large_sum_first(plan, graph, order, sorted, at);
  const std::vector<std::int32_t> made = made_positions(order, sorted, at);
  const UpdateTimes times(plan, graph, made);
  std::vector<bool> serves(at.size(), false);  // serves updates alone
  for (auto r = sorted.rbegin(); r != sorted.rend(); ++r)
    serves[*r] = !times.updates(*r) && !times.gathers(*r) && !order.after(*r).empty() &&
                 std::ranges::all_of(order.after(*r), [&](int next) { return times.updates(next) || serves[next]; });
  std::vector<std::int32_t> earliest(at.size(), 0), hidden(at.size(), 0);
  for (const int r : sorted) {
    const auto i = static_cast<std::size_t>(r);
    order.predecessors(r, [&](int first) {
      const auto f = static_cast<std::size_t>(first);
      earliest[i] = std::max(earliest[i], earliest[f]);
      hidden[i] = std::max({hidden[i], times.hidden_from(first), serves[f] ? hidden[f] : 0});
    });
    if (serves[i]) continue;
    if (times.sums(r)) at[i] = std::min(at[i], made[i]);
    const bool ends_sums = (times.updates(r) || folds(plan, graph, plan.regions[i])) && hidden[i] > 0;
    if (ends_sums || times.gathers(r)) at[i] = std::min(at[i], std::max(hidden[i], earliest[i]));
    earliest[i] = waits[i] > 0 ? at[i] : 0;
  }
  before_who_waits(order, sorted, at);
}

}  // namespace

void order_regions(FusionPlan& plan, const Graph& graph, const NodeReads& reads) {
  Order order(plan, reads);
  readers_before_updates(plan, graph, reads, order);
  const std::size_t n = plan.regions.size();
  std::vector<std::int32_t> wanted = positions(plan, graph, order);
  bring_updates_forward(plan, graph, order, wanted);
  std::vector<int> waiting = order.waiting();
  using Entry = std::pair<std::int32_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int r) { ready.emplace(wanted[r], r); };
  for (std::size_t r = 0; r < n; ++r)
    if (waiting[r] == 0) push(static_cast<int>(r));
  std::vector<Region> ordered;
  std::vector<int> position(n, -1);
  while (!ready.empty()) {
    const int r = ready.top().second;
    ready.pop();
    position[r] = static_cast<int>(ordered.size());
    ordered.push_back(std::move(plan.regions[r]));
    for (const int next : order.after(r))
      if (--waiting[next] == 0) push(next);
  }
  LATHE_ASSERT(ordered.size() == n);
  plan.regions = std::move(ordered);
  for (int& r : plan.region_of)
    if (r >= 0) r = position[r];
  plan.last_reader_first = last_readers_first(plan, graph, reads);
}

std::vector<bool> last_readers_first(const FusionPlan& plan, const Graph& graph, const NodeReads& reads) {
  const JaggedList<int> readers = readers_of_states(plan, graph, reads);
  std::vector<bool> first;
  for (const Update& update : graph.updates) {
    const int writer = plan.region(update.value);
    first.push_back(writer >= 0 &&
                    std::ranges::all_of(readers[update.state.index], [&](int reader) { return reader <= writer; }));
  }
  return first;
}

}  // namespace lathe
