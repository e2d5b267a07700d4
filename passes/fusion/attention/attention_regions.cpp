#include "passes/fusion/attention/attention_regions.h"

#include <algorithm>
#include <utility>

namespace lathe {

using ir::ValueId;

AttentionRegions::AttentionRegions(const ir::Graph& graph, FusionPlan& plan, const AttentionSearchOptions& options) {
  plan.attentions = std::make_shared<const AttentionSearch>(find_attention(graph, options));
  for (AttentionGroup group : plan.attentions->groups) {
    const int r = static_cast<int>(plan.regions.size());
    group.members.insert(group.members.end(), group.sums.begin(), group.sums.end());
    for (const ValueId id : group.inlined) plan.inlined[id] = true;
    for (const ValueId id : group.members) {
      plan.inlined[id] = false;
      plan.region_of[id] = r;
      plan.dims[id] = group.dims.at(id);
      plan.space[id] = group.space.at(id);
    }
    for (const ValueId id : group.consumers) region_of_output_[id] = r;
    Region region{.form = AttentionRegion{.row = group.row,
                                          .sequential = group.sequential,
                                          .accumulated = group.accumulated,
                                          .scores = group.members,
                                          .outputs = {}},
                  .domain = group.domain,
                  .members = group.members};
    // Dependences of the region must include the contractions that will become its output matmuls.
    region.members.insert(region.members.end(), group.consumers.begin(), group.consumers.end());
    plan.regions.push_back(std::move(region));
  }
}

int AttentionRegions::region_summed_by(ValueId contraction) const {
  const auto at = region_of_output_.find(contraction);
  return at == region_of_output_.end() ? -1 : at->second;
}

void AttentionRegions::add_output(int attention, int product) {
  const auto at = static_cast<std::size_t>(product);
  if (attention_of_.size() <= at) attention_of_.resize(at + 1, -1);
  attention_of_[at] = attention;
  outputs_[attention].push_back(product);
}

const std::vector<int>& AttentionRegions::outputs_of(int attention) const {
  static const std::vector<int> none;
  const auto found = outputs_.find(attention);
  return found == outputs_.end() ? none : found->second;
}

void AttentionRegions::drop_empty_regions(FusionPlan& plan) {
  const std::vector<int> now = lathe::drop_empty_regions(plan);
  const auto renumbered = [&](int r) { return now[r]; };
  for (auto& [contraction, r] : region_of_output_) r = renumbered(r);
  const auto before = std::exchange(outputs_, {});
  attention_of_.clear();
  for (const auto& [attention, products] : before)
    for (const int product : products) add_output(renumbered(attention), renumbered(product));
}

void AttentionRegions::absorb_outputs(FusionPlan& plan) {
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    Region& region = plan.regions[r];
    auto* attention = std::get_if<AttentionRegion>(&region.form);
    if (!attention) continue;
    region.members = attention->scores;
    for (const int output : outputs_of(static_cast<int>(r))) {
      Region& part = plan.regions[output];
      for (const ValueId id : part.members) plan.region_of[id] = static_cast<int>(r);
      region.members.insert(region.members.end(), part.members.begin(), part.members.end());
      attention->outputs.push_back(std::exchange(part, {}));
    }
    std::sort(region.members.begin(), region.members.end());
  }
  outputs_.clear();
  attention_of_.clear();
  lathe::drop_empty_regions(plan);
}

}  // namespace lathe
