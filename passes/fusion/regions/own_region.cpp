#include "passes/fusion/regions/own_region.h"

#include "ir/tensor/loop_views.h"

namespace lathe {

using ir::CustomKind;

std::optional<RegionKind> own_region(const ir::Node& node) {
  if (ir::is_loop(node)) return RegionKind::loop;
  const auto* custom = node.op->as<ir::Custom>();
  if (!custom) return std::nullopt;
  switch (custom->kind) {
    case CustomKind::scatter_add:
    case CustomKind::update_rows: return RegionKind::scatter;
    case CustomKind::cumsum:
    case CustomKind::linear_recurrence: return RegionKind::scan;
    case CustomKind::argsort:
    case CustomKind::top_k: return RegionKind::sort;
    case CustomKind::cholesky:
    case CustomKind::solve_triangular:
    case CustomKind::orthonormal_basis:
    case CustomKind::eigenvectors: return RegionKind::triangular;
    case CustomKind::grouped_matmul:
    case CustomKind::segment_outer: return RegionKind::grouped;
    case CustomKind::collective: return RegionKind::collective;
    case CustomKind::constant:
    case CustomKind::iota:
    case CustomKind::random:
    case CustomKind::random_at:
    case CustomKind::gather:
    case CustomKind::concat:
    case CustomKind::pad:
    case CustomKind::view_as_complex:
    case CustomKind::view_as_real: break;
  }
  return std::nullopt;
}

}  // namespace lathe
