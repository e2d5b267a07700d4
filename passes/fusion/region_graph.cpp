#include "passes/fusion/region_graph.h"

namespace lathe {

bool depends_on(const FusionPlan& plan, const std::vector<std::vector<Read>>& reads, std::vector<int> from,
                int target) {
  std::vector<bool> seen(plan.regions.size(), false);
  std::vector<int> work;
  const auto reach = [&](int region) {
    const int unit = unit_of(plan, region);
    if (seen[static_cast<std::size_t>(unit)]) return;
    seen[static_cast<std::size_t>(unit)] = true;
    work.push_back(unit);
  };
  const auto follow = [&](const Region& region) {
    for (const ir::ValueId member : region.members)
      for (const Read& read : reads[static_cast<std::size_t>(member.index)])
        if (const int next = plan.region(read.value); next >= 0) reach(next);
  };
  for (const int region : from) reach(region);
  const int wanted = unit_of(plan, target);
  while (!work.empty()) {
    const Region& region = plan.regions[static_cast<std::size_t>(work.back())];
    if (work.back() == wanted) return true;
    work.pop_back();
    follow(region);
    for (const int end : region.ended_by) follow(plan.regions[static_cast<std::size_t>(end)]);
  }
  return false;
}

}  // namespace lathe
