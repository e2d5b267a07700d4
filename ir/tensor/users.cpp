#include "ir/tensor/users.h"

namespace lathe::ir {

Users::Users(const Graph& graph) : first_(graph.nodes.size() + 1, 0) {
  for (const Node& node : graph.nodes)
    for (const ValueId operand : node.operands) ++first_[static_cast<std::size_t>(operand.index) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  users_.resize(first_.back());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (const ValueId id : all_values(graph))
    for (const ValueId operand : graph[id].operands) users_[next[static_cast<std::size_t>(operand.index)]++] = id;
}

}  // namespace lathe::ir
