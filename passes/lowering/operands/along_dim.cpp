#include "passes/lowering/operands/along_dim.h"

#include <numeric>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe {

std::vector<int> dims_between(int first, int last) {
  std::vector<int> dims(static_cast<std::size_t>(last - first));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

AlongDim::AlongDim(const LoweringContext& lowering, ir::ValueId id)
    : node(lowering.graph[id]),
      dim(ir::rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank())),
      pre(dims_between(0, dim)),
      post(dims_between(dim + 1, node.type.rank())),
      operand(operand_program(lowering.graph, lowering.plan, node.operands[0], dims_between(0, node.type.rank()),
                              lowering.graph[node.operands[0]].type.shape)),
      rows(operand.program.points(pre)),
      size(operand.program.domain[dim].unnamed()),
      columns(operand.program.points(post)) {}

std::vector<IndexGroup> AlongDim::element(kernel::Value row, kernel::Value t, kernel::Value column) const {
  std::vector<IndexGroup> groups = {{pre, row, 1}, {{dim}, t, 1}};
  if (!post.empty()) groups.push_back({post, column, 1});
  return groups;
}

kernel::Value ranks_before(kernel::Builder& b, kernel::Value x, kernel::Value y, bool descending) {
  const kernel::Value& less = descending ? y : x;
  const kernel::Value& more = descending ? x : y;
  if (is_integer(x.type.scalar)) return less < more;
  return kernel::logical_not(b.apply(ScalarOp::le, {more, less})) && equal(less, less);
}

bool ranks_descending(const ir::Node& node) {
  return node.attrs.get<bool>(node.op == &ir::ops::top_k ? "largest" : "descending");
}

}  // namespace lathe
