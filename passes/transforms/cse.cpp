#include "passes/transforms/cse.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/tensor/matcher.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

Graph cse(const Graph& graph) {
  // By op, operands and the hash of the attributes, which are compared one by one.
  std::map<std::tuple<const Op*, std::vector<ValueId>, std::size_t>, std::vector<ValueId>> seen;
  const auto find_equal = [&](GraphBuilder& builder, const Node& node,
                              std::span<const Value> operands) -> std::optional<Value> {
    std::vector<ValueId> ids;
    for (const Value& operand : operands) ids.push_back(operand.id());
    if (is_commutative(*node.op)) std::sort(ids.begin(), ids.end());
    auto& candidates = seen[{node.op, std::move(ids), node.attrs.hash()}];
    for (const ValueId id : candidates) {
      const Node& other = builder.graph()[id];
      if (other.attrs == node.attrs && other.type.shape == node.type.shape) return Value(builder, id);
    }
    const Value copied = builder.copy(node, operands);
    candidates.push_back(copied.id());
    return copied;
  };
  return dce(rebuild(graph, find_equal));
}

}  // namespace lathe::ir
