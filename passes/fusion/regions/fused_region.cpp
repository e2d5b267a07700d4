#include "passes/fusion/regions/fused_region.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe {

namespace {

template <class Form>
const Form& get(const Region& region, std::string_view wanted) {
  if (const auto* form = std::get_if<Form>(&region.form)) return *form;
  throw InternalError(fmt::format("a region of kind {} is used as one of kind {}", name(region.kind()), wanted));
}

}  // namespace

std::string_view name(RegionKind kind) {
  static constexpr std::string_view names[] = {"rows", "product", "columns",    "scatter",    "attention", "scan",
                                               "sort", "grouped", "triangular", "collective", "loop"};
  return names[static_cast<std::size_t>(kind)];
}

RegionForm form_of(RegionKind kind) {
  switch (kind) {
    case RegionKind::rows: return RowsRegion{};
    case RegionKind::product: return ProductRegion{};
    case RegionKind::columns: return ColumnsRegion{};
    case RegionKind::scatter: return ScatterRegion{};
    case RegionKind::attention: return AttentionRegion{};
    case RegionKind::scan: return ScanRegion{};
    case RegionKind::sort: return SortRegion{};
    case RegionKind::grouped: return GroupedRegion{};
    case RegionKind::triangular: return TriangularRegion{};
    case RegionKind::collective: return CollectiveRegion{};
    case RegionKind::loop: return LoopRegion{};
  }
  throw InternalError("a kind of region out of range");
}

const RowsRegion& Region::rows() const { return get<RowsRegion>(*this, "rows"); }
const AttentionRegion& Region::attention() const { return get<AttentionRegion>(*this, "attention"); }

int Region::folded_dims() const {
  const auto* rows = std::get_if<RowsRegion>(&form);
  return rows ? rows->inner : 0;
}

}  // namespace lathe
