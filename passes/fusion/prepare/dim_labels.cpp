#include "passes/fusion/prepare/dim_labels.h"

#include <algorithm>
#include <numeric>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "passes/fusion/fusion.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe {

using namespace ir;

namespace {

std::vector<int> counted(int rank) {
  std::vector<int> labels(static_cast<std::size_t>(rank));
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

DimLabels of_broadcast(const Graph& graph, const Node& node) {
  DimLabels labels{.operands = {}, .result = counted(node.type.rank())};
  for (const ValueId id : node.operands) {
    const Shape& shape = graph[id].type.shape;
    const int lead = node.type.rank() - shape.rank();
    std::vector<int>& own = labels.operands.emplace_back();
    for (int d = 0; d < shape.rank(); ++d)
      own.push_back(shape[d].is(1) && !node.type.shape[d + lead].is(1) ? -1 : d + lead);
  }
  return labels;
}

DimLabels of_reduction(const Graph& graph, const Node& node) {
  DimLabels labels{.operands = {counted(graph[node.operands[0]].type.rank())}, .result = {}};
  const std::vector<int> folded = reduced_dims(graph, node);
  for (const int d : labels.operands[0]) {
    const bool is_folded = std::find(folded.begin(), folded.end(), d) != folded.end();
    if (!is_folded || node.attrs.get<bool>("keepdim")) labels.result.push_back(is_folded ? -1 : d);
  }
  return labels;
}

DimLabels of_product(const Node& node) {
  const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
  const auto letters = [](const std::string& spec) { return std::vector<int>(spec.begin(), spec.end()); };
  return {.operands = {letters(roles.lhs), letters(roles.rhs)}, .result = letters(roles.out)};
}

/// In the result, the dims of the indices replace the table's dim.
DimLabels of_gather(const Graph& graph, const Node& node) {
  const int table = graph[node.operands[0]].type.rank(), indices = graph[node.operands[1]].type.rank();
  const int dim = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), table);
  DimLabels labels{.operands = {{}, {}}, .result = counted(node.type.rank())};
  for (int d = 0; d < table; ++d)
    labels.operands[0].push_back(d < dim ? d : d == dim ? node.type.rank() : d - 1 + indices);
  for (int d = 0; d < indices; ++d) labels.operands[1].push_back(dim + d);
  return labels;
}

}  // namespace

std::optional<DimLabels> dim_labels(const Graph& graph, const Node& node) {
  if (node.op->as<Elementwise>() || node.op == &ops::expand || node.op == &ops::iota)
    return of_broadcast(graph, node);
  if (node.op->as<Reduce>()) return of_reduction(graph, node);
  if (node.op->as<Contraction>()) return of_product(node);
  if (node.op == &ops::gather) return of_gather(graph, node);
  const std::vector<int> all = counted(node.type.rank());
  if (const auto order = canonical::permutation(node)) return DimLabels{.operands = {all}, .result = *order};
  if (node.op == &ops::slice || node.op == &ops::pad || node.op == &ops::concat)
    return DimLabels{.operands = std::vector<std::vector<int>>(node.operands.size(), all),
                     .result = all,
                     .cut = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank())};
  return std::nullopt;
}

}  // namespace lathe
