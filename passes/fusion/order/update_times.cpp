#include "passes/fusion/order/update_times.h"

#include <algorithm>
#include <limits>

#include "ir/hardware/network_info.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

using namespace ir;

std::int64_t hiding_bytes() { return 2 * NetworkInfo{}.bucket_bytes; }

std::vector<ProcessSum> known_sums(const FusionPlan& plan, const Graph& graph,
                                   const std::vector<std::int32_t>& made) {
  std::vector<ProcessSum> sums;
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (node.op != &ops::all_reduce && node.op != &ops::reduce_scatter) continue;
    const TensorType& type = graph[node.operands[0]].type;
    const auto elements = type.shape.numel().unnamed().value();
    const int region = plan.region(id);
    if (elements && region >= 0)
      sums.push_back({region, made[region], *elements * static_cast<std::int64_t>(size_in_bytes(type.dtype))});
  }
  std::ranges::stable_sort(sums, {}, &ProcessSum::position);
  return sums;
}

UpdateTimes::UpdateTimes(const FusionPlan& plan, const Graph& graph, const std::vector<std::int32_t>& made)
    : updates_(plan.regions.size()), gathers_(plan.regions.size()), hidden_from_(plan.regions.size()) {
  const auto mark = [&](std::vector<bool>& regions, ValueId id) {
    const int region = plan.region(id);
    if (region >= 0) regions[region] = true;
  };
  for (const Update& update : graph.updates) {
    const Node& node = graph[update.value];
    const bool is_gathered = node.op == &ops::all_gather;
    mark(is_gathered ? gathers_ : updates_, update.value);
    if (is_gathered) mark(updates_, plan.placement[node.operands[0]].base);
  }
  for (const ValueId id : all_values(graph))
    if (graph[id].op == &ops::all_reduce || graph[id].op == &ops::reduce_scatter)
      if (plan.region(id) >= 0) hidden_from_[plan.region(id)] = std::numeric_limits<std::int32_t>::max();
  const std::vector<ProcessSum> sums = known_sums(plan, graph, made);
  std::int64_t behind = 0;  // bytes of the sums (k, last)
  for (std::size_t k = 0, last = 1; k < sums.size(); ++k) {
    for (; behind < hiding_bytes() && last < sums.size(); ++last) behind += sums[last].bytes;
    if (behind >= hiding_bytes()) hidden_from_[sums[k].region] = std::max(1, sums[last - 1].position);
    if (k + 1 < sums.size()) behind -= sums[k + 1].bytes;
  }
}

}  // namespace lathe
