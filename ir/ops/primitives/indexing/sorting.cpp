#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

TensorType infer_argsort(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::reals);
  const TensorType& a = ctx.operand(0);
  ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank());
  return TensorType::contiguous(i64, a.shape);
}

TensorType infer_top_k(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::reals);
  const TensorType& a = ctx.operand(0);
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank());
  const Dim& k = ctx.attr<Dim>("k");
  Shape shape = a.shape;
  shape.set(d, k);
  rules::require_sizes(ctx, shape);
  rules::require_at_most(
      ctx, k, a.shape[d], "top_k_size",
      fmt::format("{} elements of dim {} of {} are asked for", k.to_string(), d, rules::describe(ctx, 0)),
      "ask for no more than the dim has");
  return TensorType::contiguous(i64, shape);
}

/// Returns whether a sorts before b: NaN is larger than every number, zeros are equal.
template <class T>
bool is_before(T a, T b, bool descending) {
  const T &less = descending ? b : a, &more = descending ? a : b;
  if (std::isnan(static_cast<double>(less))) return false;
  return less < more || std::isnan(static_cast<double>(more));
}

/// Computes the first positions of each row in sorted order; the sort is stable.
template <class T>
void rank_rows(const HostTensor& a, HostTensor& result, int dim, bool descending) {
  const Blocks blocks = blocks_of(a.shape(), dim), wanted = blocks_of(result.shape(), dim);
  const auto elements = a.as<T>();
  std::vector<std::int64_t> order(static_cast<std::size_t>(blocks.size));
  for (std::int64_t o = 0; o < wanted.outer; ++o)
    for (std::int64_t i = 0; i < wanted.inner; ++i) {
      const auto element = [&](std::int64_t t) { return elements[(o * blocks.size + t) * blocks.inner + i]; };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t x, std::int64_t y) { return is_before(element(x), element(y), descending); });
      for (std::int64_t t = 0; t < wanted.size; ++t)
        result.set_int((o * wanted.size + t) * wanted.inner + i, order[t]);
    }
}

HostTensor ranked(const Node& node, const HostTensor& a, const Sizes& sizes, bool descending) {
  HostTensor result(i64, sizes);
  const int dim = dim_of(node, static_cast<int>(sizes.size()));
  a.dtype() == i64 ? rank_rows<std::int64_t>(a, result, dim, descending)
                   : rank_rows<double>(a, result, dim, descending);
  return result;
}

HostTensor argsort_reference(const Node& node, Operands operands, const Sizes& sizes) {
  return ranked(node, *operands[0], sizes, node.attrs.get<bool>("descending"));
}

HostTensor top_k_reference(const Node& node, Operands operands, const Sizes& sizes) {
  return ranked(node, *operands[0], sizes, node.attrs.get<bool>("largest"));
}

std::vector<Sample> argsort_samples() {
  const auto sample = [](Sizes sizes, std::int64_t dim, bool descending, DType dtype = f64, double top = 2) {
    return Sample{.operands = {{std::move(sizes), dtype, -top, top}},
                  .attrs = {{"dim", dim}, {"descending", descending}}};
  };
  return {sample({7}, 0, false),       sample({3, 5}, 1, true),       sample({5, 3}, 0, false),
          sample({2, 9, 2}, -2, true), sample({0, 3}, 0, false),      sample({3, 0}, 0, true),
          sample({4, 1}, -1, false),   sample({9}, 0, false, i64, 3), sample({2, 9}, 1, true, i32, 2),
          sample({33}, 0, false, f32)};
}

std::vector<Sample> top_k_samples() {
  const auto sample = [](Sizes sizes, std::int64_t k, std::int64_t dim, bool largest, DType dtype = f64,
                         double top = 2) {
    return Sample{.operands = {{std::move(sizes), dtype, -top, top}},
                  .attrs = {{"k", Dim(k)}, {"dim", dim}, {"largest", largest}}};
  };
  return {sample({7}, 2, 0, true),        sample({3, 5}, 5, 1, false),     sample({5, 3}, 3, 0, true),
          sample({2, 9, 2}, 4, -2, true), sample({0, 3}, 2, 1, true),      sample({3, 4}, 0, 1, true),
          sample({4, 1}, 1, -1, false),   sample({9}, 4, 0, true, i64, 3), sample({2, 9}, 3, 1, false, i32, 2)};
}

constexpr AttrSpec argsort_attrs[] = {{"dim", AttrKind::integer, false, std::int64_t{-1}, "the dim to sort along"},
                                      {"descending", AttrKind::boolean, false, false, "sort in descending order"}};
constexpr std::string_view argsort_labels[] = {"dtype_kind", "dim_range"};
constexpr AttrSpec top_k_attrs[] = {
    {"k", AttrKind::dim, true, {}, "the number of positions to return"},
    {"dim", AttrKind::integer, false, std::int64_t{-1}, "the dim to search along"},
    {"largest", AttrKind::boolean, false, true, "return the largest elements; otherwise the smallest"}};
constexpr std::string_view top_k_labels[] = {"dtype_kind", "dim_range", "dim_negative", "top_k_size"};

}  // namespace

constinit const Op argsort = {
    .name = "argsort",
    .doc = "the i64 positions that sort the elements along a dim; stable; NaN is larger than every number",
    .arity = Arity{1, 1},
    .attrs = argsort_attrs,
    .labels = argsort_labels,
    .infer = infer_argsort,
    .meaning = Custom{CustomKind::argsort, argsort_reference, DimRule(dims_beside)},
    .precision = MixedPrecision::follow,
    .gradient = NotDifferentiable{"a position is an integer"},
    .samples = argsort_samples,
};

constinit const Op top_k = {
    .name = "top_k",
    .doc = "the i64 positions of the k largest elements along a dim, in descending order",
    .arity = Arity{1, 1},
    .attrs = top_k_attrs,
    .labels = top_k_labels,
    .infer = infer_top_k,
    .meaning = Custom{CustomKind::top_k, top_k_reference, DimRule(dims_beside)},
    .precision = MixedPrecision::follow,
    .gradient = NotDifferentiable{"a position is an integer"},
    .samples = top_k_samples,
};

}  // namespace lathe::ir::ops
