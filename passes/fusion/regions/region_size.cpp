#include "passes/fusion/regions/region_size.h"

#include <algorithm>

#include "passes/fusion/inline_policy.h"

namespace lathe {

using namespace ir;

NodeMap<std::int64_t> arithmetic_in_place(const Graph& graph, const NodeMap<bool>& inlined) {
  NodeMap<std::int64_t> found(graph, 0);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (!is_alias(node) && !inlined[id]) continue;
    for (const ValueId operand : node.operands) found[id] += found[operand];
    if (!is_alias(node)) found[id] += arithmetic_cost(node);
    found[id] = std::min(found[id], most_code + 1);  // already too much
  }
  return found;
}

bool RegionSize::is_allowed() const {
  return code() <= most_code && loops <= most_row_loops && inputs <= most_region_inputs;
}

RegionSizes::RegionSizes(const Graph& graph, const FusionPlan& plan, const NodeReads& reads)
    : graph_(graph),
      plan_(plan),
      reads_(reads),
      in_place_(arithmetic_in_place(graph, plan.inlined)),
      loop_(graph, 0) {
  for (const Region& region : plan.regions)
    if (region.kind() != RegionKind::attention)
      for (const ValueId member : region.members) note(member);
}

std::int64_t RegionSizes::arithmetic(ValueId id) const {
  const Node& node = graph_[id];
  std::int64_t sum = arithmetic_cost(node);
  for (const ValueId operand : node.operands) sum += in_place_[operand];
  return sum;
}

/// Returns how many values of other regions a node reads if it is in `region`, without arguments of the graph.
int RegionSizes::inputs(int region, ValueId id) const {
  return static_cast<int>(std::ranges::count_if(reads_[id], [&](const Read& read) {
    const int source = plan_.region(read.value);
    return source >= 0 && source != region;
  }));
}

/// Returns the first loop that can read a member that `loop` computes.
int RegionSizes::loop_after(ValueId id, int loop) const {
  const bool sums_row = graph_[id].op->as<Reduce>() && folds_trailing_dims(graph_, graph_[id]);
  return sums_row ? loop + 1 : loop;
}

/// Returns the first loop over the row that could compute a node together with the members of a region.
int RegionSizes::loop_in(int region, ValueId id) const {
  int loop = 0;
  for (const Read& read : reads_[id])
    if (plan_.region(read.value) == region) loop = std::max(loop, loop_after(read.value, loop_[read.value]));
  return loop;
}

/// Returns these loops for all members of `reader`, in order, if they were in `region`.
RegionSizes::Loops RegionSizes::loops_joined(int region, int reader) const {
  Loops loops;
  const auto known = [&](ValueId id) {
    const auto found = std::lower_bound(loops.begin(), loops.end(), std::pair(id, 0));
    return found == loops.end() || found->first != id ? 0 : found->second;
  };
  std::vector<ValueId> members = plan_.regions[reader].members;
  std::sort(members.begin(), members.end());
  for (const ValueId id : members) {
    int loop = loop_in(region, id);
    for (const Read& read : reads_[id])
      if (plan_.region(read.value) == reader) loop = std::max(loop, loop_after(read.value, known(read.value)));
    loops.emplace_back(id, loop);
  }
  return loops;
}

RegionSize& RegionSizes::size(int region) {
  if (sizes_.size() < plan_.regions.size()) sizes_.resize(plan_.regions.size());
  return sizes_[region];
}

RegionSize RegionSizes::size(int region) const {
  const auto r = static_cast<std::size_t>(region);
  return r < sizes_.size() ? sizes_[r] : RegionSize{};
}

bool RegionSizes::takes(int region, ValueId id) const {
  const RegionSize now = size(region);
  const int loops = loop_after(id, loop_in(region, id)) + 1;
  return RegionSize{now.arithmetic + arithmetic(id), std::max(now.loops, loops), now.inputs + inputs(region, id)}
      .is_allowed();
}

/// Returns the size of a region with all members of `reader`, which are then in `loops`.
RegionSize RegionSizes::joined(int region, int reader, const Loops& loops) const {
  RegionSize both = size(region);
  both.arithmetic += size(reader).arithmetic;
  both.inputs += size(reader).inputs;
  for (const auto& [id, loop] : loops) both.loops = std::max(both.loops, loop_after(id, loop) + 1);
  return both;
}

bool RegionSizes::takes_all(int region, int reader) const {
  return joined(region, reader, loops_joined(region, reader)).is_allowed();
}

void RegionSizes::note(ValueId id) {
  const int region = plan_.region(id);
  loop_[id] = loop_in(region, id);
  RegionSize& now = size(region);
  now.arithmetic += arithmetic(id);
  now.inputs += inputs(region, id);
  now.loops = std::max(now.loops, loop_after(id, loop_[id]) + 1);
}

void RegionSizes::note_all(int region, int reader) {
  const Loops loops = loops_joined(region, reader);
  size(region) = joined(region, reader, loops);
  for (const auto& [id, loop] : loops) loop_[id] = loop;
}

}  // namespace lathe
