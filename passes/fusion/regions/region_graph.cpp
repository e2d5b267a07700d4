#include "passes/fusion/regions/region_graph.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace lathe {

using ir::ValueId;

RegionGraph::RegionGraph(const ir::Graph& graph, const FusionPlan& plan, const AttentionRegions& attentions,
                         const NodeReads& reads)
    : plan_(plan),
      attentions_(attentions),
      reads_(reads),
      readers_(graph.nodes.size(),
               [&](const auto& add) {
                 for (const ValueId id : ir::all_values(graph))
                   for (const Read& read : reads[id]) add(read.value.index, id);
               }),
      paths_(graph,
             [&](ValueId id, const auto& add) {
               for (const Read& read : reads[id]) add(read.value);
             }),
      unit_(graph, -1),
      order_(*this) {
  for (int r = 0; r < static_cast<int>(plan.regions.size()); ++r)
    for (const ValueId member : region(r).members) unit_[member] = attentions.unit_of(r);
  order_.append(sorted_units());
}

/// Returns all units, each after those that it reads, and otherwise in the order of their first members in the graph.
/// Units that are merged later are then rarely far apart.
std::vector<int> RegionGraph::sorted_units() const {
  const auto count = static_cast<int>(plan_.regions.size());
  std::vector<int> waits(plan_.regions.size(), 0), sorted;
  std::priority_queue<std::pair<ValueId, int>, std::vector<std::pair<ValueId, int>>, std::greater<>> ready;
  const auto is_unit = [&](int r) { return attentions_.unit_of(r) == r; };
  const auto push = [&](int r) {
    const auto& members = region(r).members;
    ready.emplace(members.empty() ? ValueId() : *std::min_element(members.begin(), members.end()), r);
  };
  for (int r = 0; r < count; ++r)
    if (is_unit(r)) successors(r, [&](int reader) { ++waits[reader]; });
  for (int r = 0; r < count; ++r)
    if (waits[r] == 0) push(r);
  while (!ready.empty()) {
    sorted.push_back(ready.top().second);
    ready.pop();
    if (!is_unit(sorted.back())) continue;
    successors(sorted.back(), [&](int reader) {
      if (--waits[reader] == 0) push(reader);
    });
  }
  LATHE_ASSERT(sorted.size() == plan_.regions.size());
  return sorted;
}

void RegionGraph::note(std::span<const ValueId> members, int region) {
  const int unit = attentions_.unit_of(region);
  while (order_.size() < plan_.regions.size()) order_.append();
  for (const ValueId member : members) unit_[member] = unit;
  for (const ValueId member : members) read_units(member, [&](int from) { order_.add(from, unit); });
  for (const ValueId member : members) reader_units(member, [&](int to) { order_.add(unit, to); });
}

bool RegionGraph::depends_on(const std::vector<int>& from, int target) const {
  constexpr std::size_t most_outputs = 8;  // limit on the paths that are looked up in the tree
  std::vector<int> units;
  std::vector<ValueId> ends;
  for (const int r : from) {
    units.push_back(attentions_.unit_of(r));
    if (ends.size() < most_outputs && !region(r).members.empty()) ends.push_back(region(r).members.back());
  }
  return order_.depends(units, attentions_.unit_of(target), [&](int unit) {
    bool found = false;
    for_members(unit, [&](ValueId member) {
      for (const ValueId end : ends) found = found || paths_.on_path(member, end);
    });
    return found;
  });
}

}  // namespace lathe
