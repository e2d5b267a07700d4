#include "ir/ops/rules/view_rules.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir::rules {

namespace {

/// Two lists of factors without their common factors.
struct Cancelled {
  std::vector<Dim> left, right, common;
};

Cancelled cancel(const Shape& a, const Shape& b) {
  Cancelled result{.left = {}, .right = b.dims(), .common = {}};
  for (const Dim& dim : a) {
    const auto at = std::find(result.right.begin(), result.right.end(), dim);
    if (at == result.right.end()) {
      result.left.push_back(dim);
    } else {
      if (!dim.is(1)) result.common.push_back(*at);
      result.right.erase(at);
    }
  }
  return result;
}

Dim product(const std::vector<Dim>& dims) { return Shape(dims).numel(); }

/// Returns "8 * 63 = 504", "512", or "1" without factors.
std::string product_text(const std::vector<Dim>& dims) {
  std::vector<std::string> factors;
  for (const Dim& dim : dims) factors.push_back(dim.unnamed().to_string());
  std::string total = product(dims).unnamed().to_string();
  if (factors.size() < 2) return total;
  return fmt::format("{} = {}", fmt::join(factors, " * "), total);
}

/// Returns whether the products differ for all nonzero sizes: numbers, or the same unknowns with other coefficients.
bool surely_differ(const Dim& a, const Dim& b) {
  if (a.equals(b) == Dim::Answer::no) return true;
  return a.terms().size() == 1 && b.terms().size() == 1 && a.terms()[0].monomial == b.terms()[0].monomial &&
         !(a == b);
}

/// Suggests a size: "did you mean d_k=64?". Chooses the size whose smallest change makes the element counts equal.
std::string suggest_size(const Dim& total, const Shape& target) {
  std::string best;
  double best_change = 0;
  for (int i = 0; i < target.rank(); ++i) {
    Dim others(1);
    for (int j = 0; j < target.rank(); ++j)
      if (j != i) others = others * target[j].unnamed();
    const auto fitting = total.divided_by(others);
    const auto now = target[i].value(), wanted = fitting ? fitting->value() : std::nullopt;
    if (!now || !wanted || *now <= 0 || *wanted <= 0) continue;
    const double change = std::fabs(std::log(static_cast<double>(*wanted) / static_cast<double>(*now)));
    if (!best.empty() && change >= best_change) continue;
    best_change = change;
    best = target[i].name().empty() ? fmt::format("did you mean {} instead of {}?", *wanted, *now)
                                    : fmt::format("did you mean {}={}?", target[i].name(), *wanted);
  }
  return best;
}

[[noreturn]] void fail_numel(const InferContext& ctx, const Shape& target) {
  const Shape& shape = ctx.operand(0).shape;
  const Cancelled rest = cancel(shape, target);
  std::string hint = fmt::format("{} != {}", product_text(rest.left), product_text(rest.right));
  if (!rest.common.empty()) {
    std::vector<std::string> names;
    for (const Dim& dim : rest.common) names.push_back(dim.to_string());
    hint += fmt::format(" per ({})", fmt::join(names, ", "));
  }
  const std::string better = suggest_size(shape.numel(), target);
  ctx.fail("view_numel", fmt::format("the elements of {} do not fit {}", describe(ctx, 0), target.to_string()),
           better.empty() ? hint : fmt::format("{}; {}", hint, better));
}

/// Returns the size inferred for the -1 at `at`.
Dim infer_size(const InferContext& ctx, const Shape& target, int at) {
  Shape others;
  for (int i = 0; i < target.rank(); ++i) {
    if (i == at) continue;
    if (target[i].is(-1))
      ctx.fail("view_infer", fmt::format("{} leaves more than one size open", target.to_string()),
               "only one may be -1");
    others.push_back(target[i]);
  }
  const Cancelled rest = cancel(ctx.operand(0).shape, others);
  if (const auto size = product(rest.left).divided_by(product(rest.right))) return *size;
  ctx.fail("view_infer",
           fmt::format("the size for -1 in {} cannot be worked out: {} does not divide by {}", target.to_string(),
                       product_text(rest.left), product_text(rest.right)),
           fmt::format("the operand is {}; write every size", describe(ctx, 0)));
}

/// Describes how a view op changed the layout.
std::string layout_change(const Node& node) {
  if (node.op == &ops::transpose)
    return fmt::format("transpose of dims {} and {}", node.attrs.get<std::int64_t>("dim0"),
                       node.attrs.get<std::int64_t>("dim1"));
  if (node.op == &ops::permute)
    return fmt::format("permute to dims [{}]", fmt::join(node.attrs.get<std::vector<std::int64_t>>("dims"), ", "));
  if (node.op == &ops::expand) return fmt::format("expand to {}", node.type.shape.to_string());
  if (node.op == &ops::slice) return fmt::format("slice of dim {}", node.attrs.get<std::int64_t>("dim"));
  if (node.op == &ops::flip) return fmt::format("flip of dim {}", node.attrs.get<std::int64_t>("dim"));
  return std::string(node.op->name.value);
}

}  // namespace

std::optional<std::vector<Dim>> view_strides(const TensorType& type, const Shape& shape) {
  if (type.is_contiguous() || type.shape.numel().is(0)) return row_major_strides(shape);
  if (type.rank() == 0) return row_major_strides(shape);
  std::vector<Dim> strides(static_cast<std::size_t>(shape.rank()), Dim(1));
  const auto stride_of = [&](int d) { return type.strides[d]; };
  // Walks both shapes from the end. `whole` is the number of elements of a run of operand dims that is contiguous in
  // memory, `made` that of the result's dims laid over it.
  int out = shape.rank() - 1;
  Dim base = stride_of(type.rank() - 1), whole(1), made(1);
  for (int d = type.rank() - 1; d >= 0; --d) {
    whole = whole * type.shape[d].unnamed();
    const bool run_ends = d == 0 || (!type.shape[d - 1].is(1) && !(stride_of(d - 1) == whole * base));
    if (!run_ends) continue;
    while (out >= 0 && (!(made == whole) || shape[out].is(1))) {
      const Dim next = made * shape[out].unnamed();
      if (!whole.divided_by(next)) return std::nullopt;
      strides[out--] = made * base;
      made = next;
    }
    if (!(made == whole)) return std::nullopt;
    if (d > 0) base = stride_of(d - 1);
    whole = made = Dim(1);
  }
  if (out != -1) return std::nullopt;
  return strides;
}

Shape resolve_view_shape(const InferContext& ctx, const Shape& target) {
  Shape shape = target;
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i].is(-1)) {
      shape.set(i, infer_size(ctx, target, i));
      break;
    }
  require_sizes(ctx, shape);
  const Cancelled rest = cancel(ctx.operand(0).shape, shape);
  const Dim left = product(rest.left), right = product(rest.right);
  const bool same = ctx.operand(0).shape.numel() == shape.numel();  // e.g. both have no elements
  if (!same && surely_differ(left, right)) fail_numel(ctx, shape);
  if (!same)
    ctx.require_equal(ctx.operand(0).shape.numel(), shape.numel(), "view_numel",
                      fmt::format("the elements of {} do not fit {}", describe(ctx, 0), shape.to_string()));
  return shape;
}

std::string strided_by(const Graph& graph, ValueId value) {
  std::string story;
  for (ValueId id = value; !graph[id].type.is_contiguous(); id = graph[id].operands[0]) {
    const Node& node = graph[id];
    if (node.operands.empty()) break;
    story = fmt::format("{} at {}", layout_change(node), node.loc.to_string());
  }
  return story;
}

SliceBounds slice_bounds(const Dim& size, const Dim& start, const Dim& stop) {
  const auto from_end = [&](const Dim& at) { return at.value().value_or(0) < 0 ? size.unnamed() + at : at; };
  return {from_end(start), from_end(stop)};
}

}  // namespace lathe::ir::rules
