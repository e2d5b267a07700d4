#include "passes/chunks/row_axis.h"

#include <algorithm>

#include "passes/fusion/prepare/dim_labels.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe {

using namespace ir;

namespace {

Dim product_of(const Shape& shape, int first, int last) {
  Dim product(1);
  for (int d = first; d < last; ++d) product = product * shape[d].unnamed();
  return product;
}

/// Returns where rows are if the same elements are viewed in another shape.
std::optional<RowAxis> reshaped(const Shape& from, const Shape& to, const RowAxis& axis) {
  const Dim outer = product_of(from, 0, axis.dim), row = axis.unit * product_of(from, axis.dim + 1, from.rank());
  for (int d = 0; d < to.rank(); ++d) {
    if (to[d].is(1) || product_of(to, 0, d) != outer) continue;
    const auto unit = row.divided_by(product_of(to, d + 1, to.rank()));
    return unit ? std::optional(RowAxis{d, *unit}) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<RowAxis> labelled(const std::vector<int>& labels, int label, const Dim& unit) {
  const auto at = std::find(labels.begin(), labels.end(), label);
  if (at == labels.end()) return std::nullopt;
  return RowAxis{static_cast<int>(at - labels.begin()), unit};
}

}  // namespace

std::optional<RowsThrough> rows_through(const Graph& graph, const Node& node, int from, const RowAxis& axis,
                                        bool resized) {
  if (canonical::keeps_order(*node.op)) {
    const Shape &operand = graph[node.operands[0]].type.shape, &result = node.type.shape;
    const auto other = from < 0 ? reshaped(result, operand, axis) : reshaped(operand, result, axis);
    if (!other) return std::nullopt;
    return from < 0 ? RowsThrough{{other}, axis} : RowsThrough{{axis}, other};
  }
  const auto labels = dim_labels(graph, node);
  if (!labels) return std::nullopt;
  const std::vector<int>& known = from < 0 ? labels->result : labels->operands[from];
  const int label = known[axis.dim];
  if (label < 0 || (label == labels->cut && !resized)) return std::nullopt;
  RowsThrough found{{}, labelled(labels->result, label, axis.unit)};
  for (const std::vector<int>& operand : labels->operands)
    found.operands.push_back(labelled(operand, label, axis.unit));
  return found;
}

}  // namespace lathe
