#include <algorithm>
#include <numeric>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/ops/rules/view_rules.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe::ir::canonical {

using rules::normalize_axis;

std::optional<std::vector<int>> permutation(const Node& node) {
  const int rank = node.type.rank();
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  const auto axis = [&](std::int64_t dim) { return static_cast<std::size_t>(normalize_axis(dim, rank)); };
  if (node.op == &ops::transpose) {
    std::swap(order[axis(node.attrs.get<std::int64_t>("dim0"))], order[axis(node.attrs.get<std::int64_t>("dim1"))]);
    return order;
  }
  if (node.op != &ops::permute) return std::nullopt;
  const auto& dims = node.attrs.get<std::vector<std::int64_t>>("dims");
  for (std::size_t i = 0; i < dims.size(); ++i) order[i] = normalize_axis(dims[i], rank);
  return order;
}

Value permuted(const Value& value, const std::vector<int>& order) {
  std::vector<int> moved;
  for (int i = 0; i < static_cast<int>(order.size()); ++i)
    if (order[i] != i) moved.push_back(i);
  if (moved.empty()) return value;
  if (moved.size() == 2) return transpose(value, moved[0], moved[1]);
  return permute(value, std::vector<std::int64_t>(order.begin(), order.end()));
}

Range range_of(const Node& slice, const Shape& shape) {
  const int dim = normalize_axis(slice.attrs.get<std::int64_t>("dim"), shape.rank());
  const auto bounds = rules::slice_bounds(shape[dim], slice.attrs.get<Dim>("start"), slice.attrs.get<Dim>("stop"));
  return {dim, bounds.start.unnamed(), bounds.stop.unnamed(), slice.attrs.get<std::int64_t>("step")};
}

int flipped_dim(const Node& flip) { return normalize_axis(flip.attrs.get<std::int64_t>("dim"), flip.type.rank()); }

bool keeps_order(const Op& op) {
  return &op == &ops::view || &op == &ops::reshape || &op == &ops::unsqueeze || &op == &ops::squeeze;
}

namespace {

std::optional<Value> join_permutations(const Context& c) {
  const auto outer = permutation(c.node);
  if (!outer) return std::nullopt;
  const auto inner = permutation(c.operand(0).node());
  if (!inner) return permuted(c.operand(0), *outer);
  std::vector<int> order;
  for (const int dim : *outer) order.push_back((*inner)[dim]);
  return permuted(operand_of(c.operand(0)), order);
}

std::optional<Value> drop_reshape(const Context& c) {
  if (!keeps_order(*c.node.op)) return std::nullopt;
  if (c.full_shape(0)) return c.operand(0);
  if (!keeps_order(*c.operand(0).node().op)) return std::nullopt;
  const Value base = operand_of(c.operand(0));
  if (base.shape() == c.shape()) return base;
  return std::nullopt;
}

std::optional<Value> join_reshapes(const Context& c) {
  if (c.node.op != &ops::view && c.node.op != &ops::reshape) return std::nullopt;
  if (!keeps_order(*c.operand(0).node().op)) return std::nullopt;
  const Value base = operand_of(c.operand(0));
  if (!rules::view_strides(base.type(), c.shape())) return std::nullopt;  // the first view copies
  return view(base, c.shape());
}

std::optional<Value> drop_contiguous(const Context& c) {
  if (c.node.op != &ops::contiguous || !c.operand(0).type().is_contiguous()) return std::nullopt;
  return c.operand(0);
}

std::optional<Value> join_expands(const Context& c) {
  if (c.node.op != &ops::expand) return std::nullopt;
  if (c.full_shape(0)) return c.operand(0);
  if (!is(c.operand(0), ops::expand)) return std::nullopt;
  return expand(operand_of(c.operand(0)), c.shape());
}

/// Whether the operands' shapes broadcast to `result` without a run-time check.
bool broadcasts_to(std::span<const Value> operands, const Shape& result) {
  for (int d = 0; d < result.rank(); ++d) {
    bool given = false;
    for (const Value& operand : operands) {
      const int at = operand.rank() - result.rank() + d;
      if (at < 0) continue;
      const Dim& size = operand.shape()[at];
      if (size != result[d] && !size.is(1)) return false;
      given = given || size == result[d];
    }
    if (!given) return false;
  }
  return true;
}

std::optional<Value> absorb_expand(const Context& c) {
  if (!c.node.op->as<Elementwise>()) return std::nullopt;
  std::vector<Value> operands(c.operands.begin(), c.operands.end());
  bool changed = false;
  for (Value& operand : operands) {
    if (!is(operand, ops::expand)) continue;
    const Value kept = operand;
    operand = operand_of(kept);
    if (broadcasts_to(operands, c.shape()))
      changed = true;
    else
      operand = kept;
  }
  if (!changed) return std::nullopt;
  return c.builder.add(*c.node.op, operands, c.node.attrs);
}

std::optional<Value> join_slices(const Context& c) {
  if (c.node.op != &ops::slice) return std::nullopt;
  const Shape shape = c.operand(0).shape();
  const Range outer = range_of(c.node, shape);
  if (outer.step == 1 && outer.start.is(0) && outer.stop == shape[outer.dim]) return c.operand(0);
  if (!is(c.operand(0), ops::slice)) return std::nullopt;
  const Value base = operand_of(c.operand(0));
  const Range inner = range_of(c.operand(0).node(), base.shape());
  if (inner.dim != outer.dim || inner.step != 1) return std::nullopt;
  return slice(base, outer.dim, inner.start + outer.start, inner.start + outer.stop, outer.step);
}

std::optional<Value> drop_flips(const Context& c) {
  if (c.node.op != &ops::flip || !is(c.operand(0), ops::flip)) return std::nullopt;
  if (flipped_dim(c.node) != flipped_dim(c.operand(0).node())) return std::nullopt;
  return operand_of(c.operand(0));
}

/// Flips are the outermost views, where flipped_sum finds them.
std::optional<Value> flip_last(const Context& c) {
  const bool adds = c.node.op == &ops::unsqueeze, repeats = c.node.op == &ops::expand;
  if ((!adds && !repeats) || !is(c.operand(0), ops::flip)) return std::nullopt;
  const Value& flipped = c.operand(0);
  int dim = flipped_dim(flipped.node());
  if (repeats) dim += c.shape().rank() - flipped.rank();
  if (adds && normalize_axis(c.node.attrs.get<std::int64_t>("dim"), c.shape().rank()) <= dim) ++dim;
  return flip(c.builder.add(*c.node.op, {operand_of(flipped)}, c.node.attrs), dim);
}

constexpr Rule all_view_rules[] = {
    {"join_permutations", "permute(permute(x)) -> permute(x), transpose(x) or x; one form of each",
     join_permutations},
    {"drop_reshape", "view(x) or squeeze(unsqueeze(x)) of x's own shape -> x", drop_reshape},
    {"join_reshapes", "view(view(x)) -> view(x), where neither copies", join_reshapes},
    {"drop_contiguous", "contiguous(x) -> x for a contiguous x", drop_contiguous},
    {"join_expands", "expand(expand(x)) -> expand(x); expand to x's own shape -> x", join_expands},
    {"absorb_expand", "add(expand(x), y) -> add(x, y), where y has the shape already", absorb_expand},
    {"join_slices", "slice(slice(x)) -> slice(x); slice of all of x -> x", join_slices},
    {"flip_last", "unsqueeze(flip(x)) -> flip(unsqueeze(x)); expand alike", flip_last},
    {"drop_flips", "flip(flip(x)) -> x, of one dim", drop_flips},
};

}  // namespace

std::span<const Rule> view_rules() { return all_view_rules; }

}  // namespace lathe::ir::canonical
