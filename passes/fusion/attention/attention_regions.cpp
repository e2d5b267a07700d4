#include "passes/fusion/attention/attention_regions.h"

#include <algorithm>

namespace lathe {

using ir::ValueId;

AttentionRegions::AttentionRegions(const ir::Graph& graph, FusionPlan& plan, const AttentionSearchOptions& options) {
  plan.attentions = std::make_shared<const AttentionSearch>(find_attention(graph, options));
  for (AttentionGroup group : plan.attentions->groups) {
    const int r = static_cast<int>(plan.regions.size());
    const auto at = [](ValueId id) { return static_cast<std::size_t>(id.index); };
    group.members.insert(group.members.end(), group.sums.begin(), group.sums.end());
    for (const ValueId id : group.inlined) plan.inlined[at(id)] = true;
    for (const ValueId id : group.members) {
      plan.inlined[at(id)] = false;
      plan.region_of[at(id)] = r;
      plan.dims[at(id)] = group.dims.at(id);
      plan.space[at(id)] = group.space.at(id);
    }
    for (const ValueId id : group.consumers) region_of_output_[id] = r;
    Region region{
        .kind = RegionKind::attention, .domain = group.domain, .inner = group.inner, .members = group.members};
    region.attention = {.row = group.row, .sequential = group.sequential, .accumulated = group.accumulated};
    region.attention->parts.push_back(
        {.kind = RegionKind::attention, .domain = group.domain, .inner = group.inner, .members = group.members});
    // Dependences of the region must include the contractions that will become its output matmuls.
    region.members.insert(region.members.end(), group.consumers.begin(), group.consumers.end());
    plan.regions.push_back(std::move(region));
  }
}

int AttentionRegions::region_summed_by(ValueId contraction) const {
  const auto at = region_of_output_.find(contraction);
  return at == region_of_output_.end() ? -1 : at->second;
}

void absorb_output_products(FusionPlan& plan) {
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    Region& region = plan.regions[r];
    if (!region.attention) continue;
    region.members = region.attention->parts[0].members;
    for (const int output : region.attention->output_products) {
      Region& part = plan.regions[static_cast<std::size_t>(output)];
      for (const ValueId id : part.members) plan.region_of[static_cast<std::size_t>(id.index)] = static_cast<int>(r);
      region.members.insert(region.members.end(), part.members.begin(), part.members.end());
      region.attention->parts.push_back(std::move(part));
      part = {};
    }
    region.attention->output_products.clear();
    std::sort(region.members.begin(), region.members.end());
  }
  drop_empty_regions(plan);
}

}  // namespace lathe
