#include "passes/fusion/affine.h"

#include <algorithm>
#include <ranges>

#include "ir/ops/collectives.h"
#include "ir/ops/draws.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

bool operator==(const AffineComponent& a, const AffineComponent& b) {
  return a.dim == b.dim && (a.dim < 0 || a.scale == b.scale) && a.offset == b.offset && a.more == b.more;
}

AffineIndex identity_index(int rank) {
  AffineIndex index;
  for (int i = 0; i < rank; ++i) index.push_back({.dim = i, .scale = 1, .offset = 0});
  return index;
}

AffineIndex broadcast_index(const Shape& operand, const Shape& result, const AffineIndex& index) {
  AffineIndex found;
  const int shift = result.rank() - operand.rank();
  for (int i = 0; i < operand.rank(); ++i) {
    const bool stretched = operand[i].is(1) && !result[i + shift].is(1);
    found.push_back(stretched ? AffineComponent{.dim = -1, .scale = 0, .offset = 0} : index[i + shift]);
  }
  return found;
}

AffineComponent composed(const AffineComponent& component, const AffineIndex& index) {
  std::vector<ir::IndexMap::Term> terms;  // at most one per dim
  Dim offset = component.offset;
  component.each_term([&](int dim, std::int64_t scale) {
    const AffineComponent& outer = index[dim];
    offset = offset + Dim(scale) * outer.offset;
    outer.each_term([&](int outer_dim, std::int64_t outer_scale) {
      const auto same = std::ranges::find(terms, outer_dim, &ir::IndexMap::Term::dim);
      if (same == terms.end())
        terms.push_back({outer_dim, scale * outer_scale});
      else
        same->scale += scale * outer_scale;
    });
  });
  AffineComponent found{.dim = -1, .scale = 0, .offset = std::move(offset)};
  if (terms.empty()) return found;
  found.dim = terms.front().dim;
  found.scale = terms.front().scale;
  found.more.assign(terms.begin() + 1, terms.end());
  return found;
}

AffineIndex through_view(const ir::IndexMap& map, const AffineIndex& index) {
  LATHE_ASSERT(!map.reshape);
  AffineIndex found;
  found.reserve(map.components.size());
  for (const AffineComponent& component : map.components) found.push_back(composed(component, index));
  return found;
}

Linear linear_form(const AffineIndex& index, const std::vector<Dim>& strides, const Dim& offset, int rank) {
  Linear form{.coefficients = std::vector<Dim>(static_cast<std::size_t>(rank), Dim(0)), .offset = offset};
  for (std::size_t i = 0; i < index.size(); ++i) {
    form.offset = form.offset + index[i].offset * strides[i];
    index[i].each_term([&](int dim, std::int64_t scale) {
      Dim& coefficient = form.coefficients[dim];
      coefficient = coefficient + Dim(scale) * strides[i];
    });
  }
  return form;
}

bool merges(const Linear& form, const std::vector<int>& dims, const Shape& domain) {
  std::optional<Dim> expected;
  for (const int d : std::views::reverse(dims)) {
    if (domain[d].is(1)) continue;
    const Dim& stride = form.coefficients[d];
    if (expected && stride != *expected) return false;
    expected = stride * domain[d].unnamed();
  }
  return true;
}

bool is_alias(const ir::Node& node) { return node.op->as<ir::View>() && node.op != &ir::ops::contiguous; }

ir::ValueId through_aliases(const ir::Graph& graph, ir::ValueId id) {
  while (is_alias(graph[id])) id = graph[id].operands[0];
  return id;
}

bool reads_by_address(const ir::Node& node) {
  return node.op == &ir::ops::gather || ir::is_draw(*node.op) || node.op == &ir::ops::update_rows ||
         ir::is_collective(*node.op);
}

ir::NodeMap<Placement> placements(const ir::Graph& graph) {
  ir::NodeMap<Placement> found(graph);
  for (const ir::ValueId id : ir::all_values(graph)) {
    const ir::Node& node = graph[id];
    if (!is_alias(node)) {
      found[id] = {.base = id, .offset = 0};
      continue;
    }
    const ir::ValueId source = node.operands[0];
    Placement placement = found[source];
    const ir::IndexMap map = node.op->as<ir::View>()->map(graph, node);
    for (std::size_t i = 0; i < map.components.size(); ++i)
      placement.offset = placement.offset + map.components[i].offset * graph[source].type.strides[i];
    found[id] = placement;
  }
  return found;
}

}  // namespace lathe
