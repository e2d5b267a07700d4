#include "passes/fusion/scatter_base.h"

#include "ir/ops/primitives/primitives.h"

namespace lathe {

using namespace ir;

std::optional<ScatterBase> scatter_base(const Graph& graph, const FusionPlan& plan, const Users& users,
                                        const NodeMap<bool>& results, ValueId add) {
  const auto is_result = [&](ValueId id) { return bool(results[id]); };
  const Node& node = graph[add];
  if (node.op != &ops::add || node.operands[0] == node.operands[1] || is_result(add)) return std::nullopt;
  const auto only_here = [&](ValueId id) {
    const TensorType& type = graph[id].type;
    return users[id].size() == 1 && !is_result(id) && type.dtype == node.type.dtype &&
           type.shape == node.type.shape && type.is_contiguous();
  };
  for (const std::size_t i : {0, 1}) {
    const ScatterBase found{node.operands[i], node.operands[1 - i]};
    if (graph[found.scatter].op != &ops::scatter_add || plan.region(found.scatter) < 0 || !only_here(found.scatter) ||
        !only_here(found.base))
      continue;
    const bool computed = plan.region(found.base) >= 0 && graph[found.base].op != &ops::scatter_add;
    const bool free = plan.regions[plan.region(found.scatter)].members.size() == 1;
    if (computed && free) return found;
  }
  return std::nullopt;
}

}  // namespace lathe
