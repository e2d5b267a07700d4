#include "passes/fusion/member_dims.h"

#include <algorithm>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

std::vector<int> identity_dims(const Shape& shape) {
  std::vector<int> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i].is(1) ? -1 : i);
  return dims;
}

std::vector<int> result_dims(const ir::Graph& graph, const ir::Node& reduce, const std::vector<int>& operand_dims) {
  const std::vector<int> folded = reduced_dims(graph, reduce);
  const bool keep = reduce.attrs.get<bool>("keepdim");
  std::vector<int> dims;
  for (int i = 0; i < static_cast<int>(operand_dims.size()); ++i) {
    const bool is_folded = std::find(folded.begin(), folded.end(), i) != folded.end();
    if (is_folded && !keep) continue;
    dims.push_back(is_folded ? -1 : operand_dims[i]);
  }
  return dims;
}

MemberDims own_dims(const ir::Graph& graph, const ir::Node& node) {
  std::vector<int> space = identity_dims(index_space(graph, node));
  if (!node.op->as<ir::Reduce>()) return {space, space};
  std::vector<int> dims = result_dims(graph, node, space);
  return {std::move(dims), std::move(space)};
}

}  // namespace lathe
