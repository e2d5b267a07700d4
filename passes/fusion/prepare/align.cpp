#include "passes/fusion/prepare/align.h"

#include <algorithm>

namespace lathe {

using namespace ir;

namespace {

constexpr int unknown = -2;

/// Uses one read of a member to decide the dims in its index; returns false if it contradicts.
bool decide(const FusionPlan& plan, const Graph& graph, const Shape& space, const Read& read,
            std::vector<int>& dims) {
  if (!read.affine) return false;
  const std::vector<int>& member = plan.member_dims(read.value);
  const Shape& shape = graph[read.value].type.shape;
  for (std::size_t j = 0; j < member.size(); ++j) {
    if (member[j] < 0) continue;  // size 1
    const AffineComponent& c = read.index[j];
    if (!c.is_plain()) return false;
    if (space[c.dim] != shape[static_cast<int>(j)]) return false;
    int& decided = dims[c.dim];
    if (decided != unknown && decided != member[j]) return false;
    decided = member[j];
  }
  return true;
}

bool uses_twice(const std::vector<int>& dims) {
  std::vector<int> used;
  for (const int d : dims)
    if (d >= 0) used.push_back(d);
  std::sort(used.begin(), used.end());
  return std::adjacent_find(used.begin(), used.end()) != used.end();
}

/// Whether dims cover domain dims [0, count), ignoring those of size 1, and no others.
bool covers(const Region& region, const std::vector<int>& dims, int count) {
  for (int d = 0; d < region.domain.rank(); ++d) {
    const bool wanted = d < count && !region.domain[d].is(1);
    const bool there = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (wanted && !there) return false;
    if (d >= count && there && !region.domain[d].is(1)) return false;
  }
  return true;
}

}  // namespace

bool covers_domain(const Region& region, const std::vector<int>& dims) {
  return covers(region, dims, region.domain.rank());
}

std::optional<std::vector<int>> align(const Graph& graph, const FusionPlan& plan, const Region& region,
                                      const Shape& space, const std::vector<Read>& reads) {
  std::vector<int> dims(static_cast<std::size_t>(space.rank()), unknown);
  bool any = false;
  for (const Read& read : reads) {
    if (std::find(region.members.begin(), region.members.end(), read.value) == region.members.end()) continue;
    if (!decide(plan, graph, space, read, dims)) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  // Dims that no member decided have size 1, or the same position if the space is the domain itself.
  const bool same = space == region.domain;
  for (int i = 0; i < space.rank(); ++i) {
    int& d = dims[i];
    if (d != unknown) continue;
    if (space[i].is(1)) {
      d = -1;
    } else if (same) {
      d = i;
    } else {
      return std::nullopt;
    }
  }
  if (uses_twice(dims)) return std::nullopt;
  const int rank = region.domain.rank();
  if (covers(region, dims, rank)) return dims;
  if (region.folded_dims() > 0 && covers(region, dims, rank - region.folded_dims())) return dims;
  return std::nullopt;
}

}  // namespace lathe
