#include "ir/ops/lookups.h"

#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir {

bool is_lookup(const Op& op) {
  const auto* custom = op.as<Custom>();
  if (!custom) return false;
  switch (custom->kind) {
    case CustomKind::gather:
    case CustomKind::scatter_add:
    case CustomKind::update_rows:
    case CustomKind::grouped_matmul:
    case CustomKind::segment_outer: return true;
    case CustomKind::constant:
    case CustomKind::iota:
    case CustomKind::random:
    case CustomKind::random_at:
    case CustomKind::collective:
    case CustomKind::cumsum:
    case CustomKind::linear_recurrence:
    case CustomKind::argsort:
    case CustomKind::top_k:
    case CustomKind::cholesky:
    case CustomKind::solve_triangular:
    case CustomKind::orthonormal_basis:
    case CustomKind::eigenvectors:
    case CustomKind::concat:
    case CustomKind::pad:
    case CustomKind::view_as_complex:
    case CustomKind::view_as_real: break;
  }
  return false;
}

std::optional<Lookup> lookup_of(const Graph& graph, const Node& node) {
  if (!is_lookup(*node.op)) return std::nullopt;
  const CustomKind kind = node.op->as<Custom>()->kind;
  if (kind == CustomKind::scatter_add) return Lookup{0, node.attrs.get<Dim>("size")};
  const Shape& shape = graph[node.operands[0]].type.shape;
  if (kind == CustomKind::grouped_matmul) return Lookup{1, shape[0].unnamed() + Dim(1)};
  if (kind == CustomKind::segment_outer) return Lookup{2, shape[0].unnamed() + Dim(1)};
  return Lookup{1, shape[rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), shape.rank())]};
}

}  // namespace lathe::ir
