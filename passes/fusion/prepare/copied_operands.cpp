#include "passes/fusion/prepare/copied_operands.h"

#include "ir/ops/primitives/primitives.h"
#include "passes/fusion/affine.h"

namespace lathe {

using namespace ir;

namespace {

/// Returns whether enough blocks read the operand that storing it pays off. Blocks run along the rows of the other
/// operand.
bool many_read(const Graph& graph, const Node& product, std::size_t which, std::int64_t few) {
  const ContractionRoles roles = product.op->as<Contraction>()->roles(product);
  const Dim rows = roles.size_of(which == 0 ? roles.rhs_free() : roles.lhs_free(), graph, product);
  return rows.value().value_or(few + 1) > few;
}

}  // namespace

NodeMap<bool> find_copied_operands(const Graph& graph, std::int64_t few,
                                   const std::function<bool(ValueId product)>& wanted) {
  NodeMap<bool> found(graph, false);
  for (const ValueId at : all_values(graph)) {
    const Node& product = graph[at];
    if (!product.op->as<Contraction>() || !wanted(at) || (product.type.dtype != bf16 && product.type.dtype != f16))
      continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (graph[product.operands[i]].type.dtype != product.type.dtype || !many_read(graph, product, i, few)) continue;
      ValueId id = through_aliases(graph, product.operands[i]);
      while (graph[id].op == &ops::pad) {
        found[id] = true;
        id = through_aliases(graph, graph[id].operands[0]);
      }
      found[id] = true;
    }
  }
  return found;
}

}  // namespace lathe
