#include "passes/shard/predict/product_flops.h"

#include "ir/tensor/op/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

double elements_of(const Graph& graph, ValueId id, const DimBindings& dims) {
  return static_cast<double>(graph[id].type.shape.numel().evaluate(dims));
}

double size_of_dim(const Graph& graph, ValueId id, int dim, const DimBindings& dims) {
  return static_cast<double>(graph[id].type.shape[dim].evaluate(dims));
}

}  // namespace

double product_flops(const Graph& graph, ValueId id, const DimBindings& dims) {
  const Node& node = graph[id];
  if (const auto* meaning = node.op->as<Contraction>()) {
    const ContractionRoles roles = meaning->roles(node);
    const Dim depth = roles.size_of(roles.contracted(), graph, node);
    return 2 * elements_of(graph, id, dims) * static_cast<double>(depth.evaluate(dims));
  }
  const auto* custom = node.op->as<Custom>();
  if (custom && custom->kind == CustomKind::grouped_matmul)  // x [s, k] -> [s, n]
    return 2 * elements_of(graph, id, dims) * size_of_dim(graph, node.operands[0], 1, dims);
  // a [s, n], b [s, k]: segments are assumed to have equal lengths.
  if (custom && custom->kind == CustomKind::segment_outer)
    return 2 * elements_of(graph, node.operands[0], dims) * size_of_dim(graph, node.operands[1], 1, dims) /
           (size_of_dim(graph, node.operands[2], 0, dims) - 1);
  return 0;
}

double product_flops(const Graph& graph, const DimBindings& dims) {
  double flops = 0;
  for (const ValueId id : all_values(graph)) flops += product_flops(graph, id, dims);
  return flops;
}

}  // namespace lathe::shard
