#include "ir/ops/precision.h"

#include <fmt/core.h>

#include <vector>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/builder.h"

namespace lathe::ir {

namespace {

/// Returns the precision that the expansion needs: f32 if any of its ops does.
MixedPrecision precision_of_expansion(const Graph& graph, const Node& node) {
  GraphBuilder alone(node.op->name.value);
  const GraphBuilder::At at(alone, node.loc);
  std::vector<Value> operands;
  for (const ValueId id : node.operands) {
    const TensorType& type = graph[id].type;
    operands.push_back(alone.argument(ops::input, fmt::format("operand{}", operands.size()), type.dtype, type.shape));
  }
  const auto* composite = node.op->as<Composite>();
  LATHE_ASSERT(composite);
  (void)composite->expand(alone, node, operands);
  MixedPrecision all = MixedPrecision::follow;
  for (const ValueId id : all_values(alone.graph())) {
    const MixedPrecision one = precision_of(alone.graph(), alone.graph()[id]);
    if (one == MixedPrecision::f32) return one;
    if (one == MixedPrecision::low_precision) all = one;
  }
  return all;
}

}  // namespace

MixedPrecision precision_of(const Graph& graph, const Node& node) {
  const MixedPrecision own = node.op->precision;
  return own == MixedPrecision::expansion ? precision_of_expansion(graph, node) : own;
}

}  // namespace lathe::ir
