#include "passes/lowering/elementwise/index_space.h"

#include <algorithm>
#include <ranges>

namespace lathe {

namespace {

const Dim& coefficient(const Linear& form, int dim) { return form.coefficients[static_cast<std::size_t>(dim)]; }

/// The stride of the innermost dim whose size is not 1: the stride of the merged group.
Dim merged_stride(const Linear& form, const std::vector<int>& dims, const Shape& domain) {
  for (const int d : std::views::reverse(dims))
    if (!domain[d].is(1)) return coefficient(form, d);
  return Dim(0);
}

}  // namespace

int Place::lanes() const {
  int most = 1;
  for (const IndexGroup& group : groups_) most = std::max(most, group.lanes);
  return most;
}

bool Place::merges(const Linear& form, const std::vector<int>& dims, const Shape& domain) {
  std::optional<Dim> expected;
  for (const int d : std::views::reverse(dims)) {
    if (domain[d].is(1)) continue;
    const Dim& stride = coefficient(form, d);
    if (expected && stride != *expected) return false;
    expected = stride * domain[d].unnamed();
  }
  return true;
}

/// The index along dim number `which` of a group: (base / product of the inner sizes) % its size.
kernel::Value Place::component(std::size_t group, std::size_t which) {
  const auto key = std::make_pair(group, which);
  if (const auto at = components_.find(key); at != components_.end()) return at->second;
  const IndexGroup& g = groups_[group];
  kernel::Value index = g.lanes > 1 ? context_.builder.ramp(g.base, g.lanes) : g.base;
  Dim inner(1);
  for (std::size_t i = which + 1; i < g.dims.size(); ++i) inner = inner * domain_[g.dims[i]].unnamed();
  if (!inner.is(1)) index = index / context_.dim(inner);
  bool outermost = true;
  for (std::size_t i = 0; i < which; ++i) outermost = outermost && domain_[g.dims[i]].is(1);
  if (!outermost) index = index % context_.dim(domain_[g.dims[which]]);
  components_.emplace(key, index);
  return index;
}

/// Where a form begins. One that begins beyond all that it spans is of a later part of a larger value: its place is
/// an argument, so that all parts share code.
kernel::Value Place::offset(const Linear& form) {
  Dim span(0);
  for (int d = 0; d < domain_.rank(); ++d) span = span + coefficient(form, d) * (domain_[d].unnamed() - Dim(1));
  const std::int64_t reach = span.value().value_or(0), start = form.offset.value().value_or(0);
  return reach > 0 && start > reach ? context_.argument(start) : context_.dim(form.offset);
}

Place::Position Place::position(const Linear& form) {
  Position p{.base = offset(form), .stride = Dim(0), .vector = {}};
  std::optional<kernel::Value> vector;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const IndexGroup& group = groups_[g];
    if (merges(form, group.dims, domain_)) {
      const Dim stride = merged_stride(form, group.dims, domain_);
      if (stride.is(0)) continue;
      p.base = p.base + group.base * context_.dim(stride);
      if (group.lanes > 1) p.stride = stride;
      continue;
    }
    for (std::size_t i = 0; i < group.dims.size(); ++i) {
      const Dim& stride = coefficient(form, group.dims[i]);
      if (stride.is(0) || domain_[group.dims[i]].is(1)) continue;
      const kernel::Value part = component(g, i) * context_.dim(stride);
      if (group.lanes > 1) {
        vector = vector ? *vector + part : part;
      } else {
        p.base = p.base + part;
      }
    }
  }
  if (vector) {
    LATHE_ASSERT(p.stride.is(0));
    p.vector = *vector + p.base;
  }
  return p;
}

kernel::Value Place::value(const Linear& form) {
  const Position p = position(form);
  if (p.vector) return *p.vector;
  if (p.stride.is(0)) return p.base;
  return context_.builder.ramp(p.base, lanes(), context_.dim(p.stride));
}

}  // namespace lathe
