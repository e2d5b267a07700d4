#include "models/import/pt2/ops/networks/safe_softmax.h"

#include <limits>

#include "models/import/pt2/ops/aten_functions.h"

namespace lathe::pt2 {

namespace {

/// Equal ops of a graph are one node, so equal expressions are one value.
bool are_same(const Tensor& a, const Tensor& b) { return a.value().id() == b.value().id(); }

}  // namespace

std::optional<Tensor> safe_softmax_of(const Tensor& condition, const Tensor& zeros, const Tensor& weights) {
  const ir::Node& node = weights.value().node();
  if (op_name(weights) != "softmax" || node.attrs.get<bool>("zero_masked")) return std::nullopt;
  if (op_name(condition) != "logical_not" || condition.rank() != weights.rank()) return std::nullopt;
  const Graph graph = weights.graph();
  if (!are_same(zeros, graph.full(weights.shape(), 0, weights.dtype()))) return std::nullopt;
  const auto axis = static_cast<int>(node.attrs.get<std::int64_t>("dim"));
  const Tensor scores = operand_of(weights);
  const Tensor hidden = graph.constant(-std::numeric_limits<double>::infinity(), scores.dtype());
  const Tensor is_masked = ~(~(scores == hidden)).any(axes_of({axis < 0 ? axis + weights.rank() : axis}), true);
  if (!are_same(condition, is_masked)) return std::nullopt;
  return softmax(scores, axis, true);
}

}  // namespace lathe::pt2
