#include "passes/fusion/order/dependence.h"

#include <algorithm>

namespace lathe {

using ir::ValueId;

Dependence::Dependence(const ir::Graph& graph)
    : graph_(graph),
      paths_(graph,
             [&](ValueId id, const auto& add) {
               for (const ValueId operand : graph[id].operands) add(operand);
             }),
      seen_(graph, 0) {}

bool Dependence::needs_any(ValueId value, std::span<const ValueId> sources) const {
  if (sources.empty()) return false;
  const ValueId first = *std::min_element(sources.begin(), sources.end());
  std::int32_t least = paths_.depth(value);
  for (const ValueId source : sources) least = std::min(least, paths_.depth(source));
  ++search_;
  std::vector<ValueId> work = {value};
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (std::any_of(sources.begin(), sources.end(), [&](ValueId source) { return paths_.on_path(source, id); }))
      return true;
    for (const ValueId operand : graph_[id].operands) {
      if (operand < first || paths_.depth(operand) < least) continue;
      std::int32_t& seen = seen_[operand];
      if (seen != search_) work.push_back(operand);
      seen = search_;
    }
  }
  return false;
}

}  // namespace lathe
