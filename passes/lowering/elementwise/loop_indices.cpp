#include "passes/lowering/elementwise/loop_indices.h"

#include <algorithm>
#include <ranges>

namespace lathe {

namespace {

const Dim& coefficient(const Linear& form, int dim) { return form.coefficients[dim]; }

}  // namespace

int LoopIndices::lanes() const {
  int most = 1;
  for (const IndexGroup& group : groups_) most = std::max(most, group.lanes);
  return most;
}

std::uint64_t LoopIndices::lane_dims() const {
  std::uint64_t dims = 0;
  for (const IndexGroup& group : groups_)
    for (const int d : group.dims)
      if (group.lanes > 1) dims |= 1ULL << d;
  return dims;
}

Dim LoopIndices::merged_stride(const Linear& form, const std::vector<int>& dims, const Shape& domain) {
  for (const int d : std::views::reverse(dims))
    if (!domain[d].is(1)) return coefficient(form, d);
  return Dim(0);
}

/// Whether all lanes of the group differ only in their index along its last dim. This holds if the size of that dim
/// and the group's base are known multiples of the number of lanes.
bool LoopIndices::stay_in_one_run(const IndexGroup& group) const {
  const auto size = domain_[group.dims.back()].value();
  return size && *size % group.lanes == 0 && context_.builder.divisor(group.base) % group.lanes == 0;
}

/// Returns the index along dim number `which` of a group: (base / product of the inner sizes) % its size. `of_lanes`
/// selects a vector of all lanes instead of lane 0.
kernel::Value LoopIndices::component(std::size_t group, std::size_t which, bool of_lanes) {
  const auto key = std::make_tuple(group, which, of_lanes);
  if (const auto at = components_.find(key); at != components_.end()) return at->second;
  const IndexGroup& g = groups_[group];
  if (g.lanes > 1 && of_lanes && wraps_once(g)) {
    add_wrapped_components(group);
    return components_.at(key);
  }
  kernel::Value index = g.lanes > 1 && of_lanes ? context_.builder.ramp(g.base, g.lanes) : g.base;
  Dim inner(1);
  for (std::size_t i = which + 1; i < g.dims.size(); ++i) inner = inner * domain_[g.dims[i]].unnamed();
  if (!inner.is(1)) index = index / context_.dim(inner);
  if (!is_outermost(g, which)) index = index % context_.dim(domain_[g.dims[which]]);
  components_.emplace(key, index);
  return index;
}

/// Whether all dims of a group before this one have size 1, so that the index along it never wraps around.
bool LoopIndices::is_outermost(const IndexGroup& group, std::size_t which) const {
  return std::ranges::all_of(group.dims | std::views::take(which), [&](int d) { return domain_[d].is(1); });
}

/// Whether the innermost dim of a group has a known size of at least the number of lanes. Its index then wraps around
/// at most once per vector.
bool LoopIndices::wraps_once(const IndexGroup& group) const {
  for (const int d : std::views::reverse(group.dims))
    if (!domain_[d].is(1)) return domain_[d].value().value_or(0) >= group.lanes;
  return false;
}

/// Adds the components of all lanes of a group: those of lane 0, which need divisions of scalars only, plus the lane
/// along the innermost dim, with a carry from dim to dim.
void LoopIndices::add_wrapped_components(std::size_t group) {
  kernel::Builder& b = context_.builder;
  const IndexGroup& g = groups_[group];
  const kernel::Value zero = b.constant(i64, 0, g.lanes), one = b.constant(i64, 1, g.lanes);
  std::optional<kernel::Value> carry;
  for (std::size_t i = g.dims.size(); i-- > 0;) {
    const Dim& size = domain_[g.dims[i]];
    const kernel::Value first = component(group, i, false);
    kernel::Value index = carry || size.is(1) ? b.broadcast(first, g.lanes) : b.ramp(first, g.lanes);
    if (carry && !size.is(1)) index = index + *carry;
    if (!is_outermost(g, i) && !size.is(1)) {
      const kernel::Value end = b.broadcast(context_.dim(size), g.lanes), past = end <= index;
      index = b.select(past, index - end, index);
      carry = b.select(past, one, zero);
    }
    components_.emplace(std::make_tuple(group, i, true), index);
  }
}

/// Returns whether a form accesses one of many equal parts of a larger value: a part that starts beyond its own
/// extent, or a part of each row, such as one time step in each sequence of a batch.
bool LoopIndices::is_one_of_many(const Linear& form) const {
  constexpr std::int64_t many = 8;
  const std::int64_t start = form.offset.value().value_or(0);
  Dim span(0);                    // of the dims that stay inside a part
  std::optional<Dim> other_rows;  // smallest stride of the other dims, preferring known ones
  for (int d = 0; d < domain_.rank(); ++d) {
    const Dim& stride = coefficient(form, d);
    if (stride.is(0) || domain_[d].is(1)) continue;
    const auto step = stride.value(), size = domain_[d].value();
    if (step && *step < 0) return false;
    if (step && *step <= start) {
      if (!size) return false;
      span = span + stride.unnamed() * (domain_[d].unnamed() - Dim(1));
    } else if (!other_rows || (step && *step < other_rows->value().value_or(*step + 1))) {
      other_rows = stride;
    }
  }
  const std::int64_t reach = *span.value();
  const auto rows = other_rows ? other_rows->value() : std::nullopt;
  return reach > 0 && start > reach && (!rows || *rows / many > reach);
}

/// Returns the offset of a form. One of many parts gets its offset as an argument, so that all parts share code.
kernel::Value LoopIndices::offset(const Linear& form) {
  return is_one_of_many(form) ? context_.argument(*form.offset.value()) : context_.dim(form.offset);
}

LoopIndices::Position LoopIndices::position(const Linear& form) {
  Position p{.base = offset(form), .stride = Dim(0), .vector = {}};
  std::optional<kernel::Value> vector;
  std::size_t of_vector = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const IndexGroup& group = groups_[g];
    if (merges(form, group.dims, domain_)) {
      const Dim stride = merged_stride(form, group.dims, domain_);
      if (stride.is(0)) continue;
      p.base = p.base + group.base * context_.dim(stride);
      if (group.lanes > 1) p.stride = stride;
      continue;
    }
    const bool in_one_run = group.lanes > 1 && stay_in_one_run(group);
    for (std::size_t i = 0; i < group.dims.size(); ++i) {
      const Dim& stride = coefficient(form, group.dims[i]);
      if (stride.is(0) || domain_[group.dims[i]].is(1)) continue;
      const bool lanes_differ = group.lanes > 1 && !in_one_run;
      const kernel::Value part = component(g, i, lanes_differ) * context_.dim(stride);
      if (in_one_run && i + 1 == group.dims.size()) p.stride = stride;
      p.differs_by_vector = p.differs_by_vector || in_one_run;
      if (lanes_differ) {
        vector = vector ? *vector + part : part;
        of_vector = g;
      } else {
        p.base = p.base + part;
      }
    }
  }
  if (vector) {
    LATHE_ASSERT(p.stride.is(0));
    p.vector = *vector + p.base;
    p.runs = runs(form, of_vector, p.base);
  }
  return p;
}

/// Returns the longest line of known size and stride at the end of a group; an empty one if there is none.
LoopIndices::Line LoopIndices::line(const Linear& form, const IndexGroup& group) const {
  Line found{group.dims.size(), 1, merged_stride(form, group.dims, domain_).value().value_or(0)};
  for (std::size_t i = group.dims.size(); i-- > 0;) {
    const Dim& dim = domain_[group.dims[i]];
    if (!dim.is(1)) {
      const auto size = dim.value();
      if (!size || !coefficient(form, group.dims[i]).is(found.size * found.stride)) break;
      found.size *= *size;
    }
    found.first = i;
  }
  return found;
}

/// Returns how many runs of a stride are faster to load than single elements. If another group varies faster, its
/// loop computes positions and masks of the lanes once.
int LoopIndices::most_runs(std::size_t group, std::int64_t stride) const {
  const bool is_innermost = group + 1 == groups_.size();
  if (stride == 1 || stride == -1) return is_innermost ? 4 : 3;
  if (stride == 2) return is_innermost ? 2 : 3;
  return 0;
}

/// Returns the runs in a vector whose lanes pass the ends of lines; nothing if single elements are faster to load.
/// `base` is the part of the form that the other groups determine.
std::vector<LoopIndices::Run> LoopIndices::runs(const Linear& form, std::size_t group, kernel::Value base) {
  constexpr int least_lanes = 8;
  const IndexGroup& g = groups_[group];
  const auto [first, size, stride] = line(form, g);
  if (g.lanes < least_lanes || size < 2) return {};
  const auto count = static_cast<int>((g.lanes - 2) / size) + 2;
  if (count > most_runs(group, stride)) return {};
  const kernel::Value start = g.base % size;
  std::vector<Run> found;
  for (const std::vector<kernel::Value>& line : lines(group, first, count)) {
    const std::int64_t before = static_cast<std::int64_t>(found.size()) * size;
    kernel::Value at = base;
    for (std::size_t i = 0; i < line.size(); ++i)
      if (const Dim& step = coefficient(form, g.dims[i]); !step.is(0)) at = at + line[i] * context_.dim(step);
    found.push_back({.base = at + (start - before) * stride, .end = before + size - start, .stride = stride});
  }
  return found;
}

/// Returns the indices along the first `dims` dims of a group, for each of the first lines that its lanes are on.
/// Lines after the last one of the domain, which no active lane is on, repeat it: a masked load from a page that does
/// not exist takes thousands of cycles.
const std::vector<std::vector<kernel::Value>>& LoopIndices::lines(std::size_t group, std::size_t dims, int count) {
  const IndexGroup& g = groups_[group];
  auto& lines = lines_[dims];
  if (lines.empty()) {
    lines.emplace_back();
    for (std::size_t i = 0; i < dims; ++i) lines.back().push_back(component(group, i, false));
  }
  while (static_cast<int>(lines.size()) < count) {
    kernel::Builder& b = context_.builder;
    std::vector<kernel::Value> next = lines.back();
    kernel::Value carry = b.index(1);
    for (std::size_t i = next.size(); i-- > 0;) {
      const kernel::Value size = context_.dim(domain_[g.dims[i]]);
      next[i] = next[i] + carry;
      if (is_outermost(g, i)) {
        next[i] = kernel::min(next[i], size - 1);
        break;
      }
      const kernel::Value past = size <= next[i];
      next[i] = b.select(past, b.index(0), next[i]), carry = b.select(past, b.index(1), b.index(0));
    }
    lines.push_back(std::move(next));
  }
  return lines;
}

kernel::Value LoopIndices::value(const Linear& form) {
  const Position p = position(form);
  if (p.vector) return *p.vector;
  if (p.stride.is(0)) return p.base;
  return context_.builder.ramp(p.base, lanes(), context_.dim(p.stride));
}

}  // namespace lathe
