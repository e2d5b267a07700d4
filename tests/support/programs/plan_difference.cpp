#include "tests/support/programs/plan_difference.h"

#include <algorithm>

namespace lathe::test {

namespace {

bool same(const Region& a, const Region& b);

bool same(const std::vector<Region>& a, const std::vector<Region>& b) {
  return std::ranges::equal(a, b, [](const Region& x, const Region& y) { return same(x, y); });
}

bool same(const AttentionRegion& a, const AttentionRegion& b) {
  return a.row == b.row && a.sequential == b.sequential && a.accumulated == b.accumulated && a.scores == b.scores &&
         same(a.outputs, b.outputs);
}

bool same(const Region& a, const Region& b) {
  if (a.kind() != b.kind() || !a.domain.looks_like(b.domain) || a.members != b.members) return false;
  return a.kind() == RegionKind::attention ? same(a.attention(), b.attention()) : a.folded_dims() == b.folded_dims();
}

}  // namespace

std::string plan_difference(const FusionPlan& a, const FusionPlan& b) {
  const auto same_place = [](const Placement& x, const Placement& y) {
    return x.base == y.base && x.offset == y.offset;
  };
  if (!same(a.regions, b.regions)) return "regions";
  if (a.region_of != b.region_of) return "region_of";
  if (a.inlined != b.inlined) return "inlined";
  if (a.stored != b.stored) return "stored";
  if (a.dims != b.dims) return "dims";
  if (a.space != b.space) return "space";
  if (!std::ranges::equal(a.placement, b.placement, same_place)) return "placement";
  if (a.last_reader_first != b.last_reader_first) return "last_reader_first";
  return "";
}

}  // namespace lathe::test
