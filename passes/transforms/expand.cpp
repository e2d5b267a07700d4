#include "passes/transforms/expand.h"

#include <algorithm>

#include "ir/tensor/op/op.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

Graph expand(Graph graph, std::span<const Op* const> keep) {
  const auto expandable = [&](const Node& node) {
    return node.op->as<Composite>() && std::find(keep.begin(), keep.end(), node.op) == keep.end();
  };
  // One level per round: an expansion may contain composites.
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(), expandable)) {
    const auto once = [&](GraphBuilder& builder, const Node& node,
                          std::span<const Value> operands) -> std::optional<Value> {
      if (!expandable(node)) return std::nullopt;
      return node.op->as<Composite>()->expand(builder, node, operands);
    };
    graph = dce(rebuild(graph, once));
  }
  return graph;
}

}  // namespace lathe::ir
