#include "passes/fusion/region_graph.h"

namespace lathe {

using ir::ValueId;

struct RegionGraph::Frontier {
  explicit Frontier(std::size_t regions) : seen(regions, false) {}

  void reach(int unit) {
    if (seen[static_cast<std::size_t>(unit)]) return;
    seen[static_cast<std::size_t>(unit)] = true;
    units.push_back(unit);
  }
  bool exhausted() const { return next == units.size(); }

  std::vector<bool> seen;
  std::vector<int> units;  // in the order in which they were found
  std::size_t next = 0;
};

RegionGraph::RegionGraph(const FusionPlan& plan, const std::vector<std::vector<Read>>& reads)
    : plan_(plan), reads_(reads), readers_(reads.size()) {
  for (std::size_t i = 0; i < reads.size(); ++i)
    for (const Read& read : reads[i])
      readers_[static_cast<std::size_t>(read.value.index)].push_back({static_cast<std::int32_t>(i)});
}

void RegionGraph::follow(int unit, bool to_readers, Frontier& frontier) const {
  const auto reach = [&](ValueId value) {
    if (const int region = plan_.region(value); region >= 0) frontier.reach(unit_of(plan_, region));
  };
  const auto follow_members = [&](const Region& region) {
    for (const ValueId member : region.members) {
      const auto at = static_cast<std::size_t>(member.index);
      if (to_readers) {
        for (const ValueId reader : readers_[at]) reach(reader);
      } else {
        for (const Read& read : reads_[at]) reach(read.value);
      }
    }
  };
  const Region& region = plan_.regions[static_cast<std::size_t>(unit)];
  follow_members(region);
  for (const int end : region.ended_by) follow_members(plan_.regions[static_cast<std::size_t>(end)]);
}

bool RegionGraph::depends_on(const std::vector<int>& from, int target) const {
  Frontier sources(plan_.regions.size()), readers(plan_.regions.size());
  for (const int region : from) sources.reach(unit_of(plan_, region));
  readers.reach(unit_of(plan_, target));
  // A unit that both ends have found lies on the way; each is compared when it is followed.
  while (!sources.exhausted() && !readers.exhausted()) {
    const int source = sources.units[sources.next++];
    if (readers.seen[static_cast<std::size_t>(source)]) return true;
    follow(source, false, sources);
    const int reader = readers.units[readers.next++];
    if (sources.seen[static_cast<std::size_t>(reader)]) return true;
    follow(reader, true, readers);
  }
  return false;
}

}  // namespace lathe
