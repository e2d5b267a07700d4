#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/dilated.h"
#include "ir/ops/primitives/views/view_record.h"

namespace lathe::ir::ops {

namespace {

using Ints = std::vector<std::int64_t>;

// ---- slice

/// Returns the number of elements from start to stop by step, rounded up.
Dim slice_length(const InferContext& ctx, const Dim& span, std::int64_t step) {
  ctx.require(step >= 1, "slice_step", fmt::format("the step {} is not positive", step),
              "a slice runs forward by 1 or more");
  for (std::int64_t r = 0; r < std::min<std::int64_t>(step, 4096); ++r)
    if (const auto length = (span + Dim(r)).divided_by(step)) return *length;
  if (const auto number = span.value()) return Dim(*number / step + (*number % step != 0 ? 1 : 0));
  ctx.fail("slice_step",
           fmt::format("the length of {} by steps of {} is not known to be whole", span.to_string(), step),
           "write the range so that the step divides it");
}

TensorType slice_infer(const InferContext& ctx) {
  TensorType result = ctx.operand(0);
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), result.rank());
  const Dim size = result.shape[d];
  const auto [start, stop] = rules::slice_bounds(size, ctx.attr<Dim>("start"), ctx.attr<Dim>("stop"));
  const std::int64_t step = ctx.attr<std::int64_t>("step");
  const auto message = fmt::format("{}:{} is not a range within dim {} of {}", start.to_string(), stop.to_string(), d,
                                   rules::describe(ctx, 0));
  const std::string_view hint = "0 <= start <= stop <= size, where a negative number counts from the end";
  rules::require_at_most(ctx, 0, start, "slice_range", message, hint);
  rules::require_at_most(ctx, start, stop, "slice_range", message, hint);
  rules::require_at_most(ctx, stop, size, "slice_range", message, hint);
  const Dim length = slice_length(ctx, stop - start, step);
  const auto at = static_cast<std::size_t>(d);
  result.shape.set(d, length == size ? size : length);
  result.strides.set(at, result.strides[at] * Dim(step));
  return result;
}

IndexMap slice_map(const Graph& graph, const Node& node) {
  const TensorType& type = source(graph, node);
  const int d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), type.rank());
  const auto bounds = rules::slice_bounds(type.shape[d], node.attrs.get<Dim>("start"), node.attrs.get<Dim>("stop"));
  IndexMap map;
  for (int i = 0; i < type.rank(); ++i)
    map.components.push_back({.dim = i,
                              .scale = i == d ? node.attrs.get<std::int64_t>("step") : 1,
                              .offset = i == d ? bounds.start : Dim(0)});
  return map;
}

void slice_gradient(const GradientContext& g) {
  const Shape& shape = g.operand(0).shape();
  const int d = rules::normalize_axis(g.node.attrs.get<std::int64_t>("dim"), shape.rank());
  const auto [start, stop] =
      rules::slice_bounds(shape[d], g.node.attrs.get<Dim>("start"), g.node.attrs.get<Dim>("stop"));
  const std::int64_t step = g.node.attrs.get<std::int64_t>("step");
  Value grad = g.grad;
  if (step > 1) grad = ir::slice(ir::dilated(grad, d, step), d, 0, stop - start);
  g.set(0, ir::pad(grad, d, start, shape[d].unnamed() - stop));
}

std::vector<Sample> slice_samples() {
  const auto range = [](std::int64_t dim, Dim start, Dim stop, std::int64_t step) {
    return Attributes{{"dim", dim}, {"start", start}, {"stop", stop}, {"step", step}};
  };
  return {view_sample({5, 2}, range(0, 1, 4, 1)), view_sample({2, 5}, range(-1, 0, 5, 2)),
          view_sample({6}, range(0, 1, 6, 3)),    view_sample({4}, range(0, -2, -1, 1)),
          view_sample({4}, range(0, 2, 2, 1)),    view_sample({1, 3}, range(0, 0, 1, 1)),
          view_sample({0, 3}, range(1, 1, 3, 1)), view_sample({3, 2}, range(0, 1, 3, 1), i64)};
}

constexpr AttrSpec slice_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the dim to slice"},
    {"start", AttrKind::dim, true, {}, "the first index; a negative number counts from the end"},
    {"stop", AttrKind::dim, true, {}, "one past the last index; a negative number counts from the end"},
    {"step", AttrKind::integer, false, std::int64_t{1}, "the distance between indices"},
};
constexpr std::string_view slice_labels[] = {"dim_range", "slice_range", "slice_step"};

// ---- flip

TensorType flip_infer(const InferContext& ctx) {
  TensorType result = ctx.operand(0);
  const auto at = static_cast<std::size_t>(ctx.axis(ctx.attr<std::int64_t>("dim"), result.rank()));
  result.strides.set(at, Dim(0) - result.strides[at]);
  return result;
}

IndexMap flip_map(const Graph& graph, const Node& node) {
  const TensorType& type = source(graph, node);
  const int d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), type.rank());
  IndexMap map;
  for (int i = 0; i < type.rank(); ++i)
    map.components.push_back(
        {.dim = i, .scale = i == d ? -1 : 1, .offset = i == d ? type.shape[i].unnamed() - Dim(1) : Dim(0)});
  return map;
}

void flip_gradient(const GradientContext& g) {
  g.set(0, ir::flip(g.grad, static_cast<int>(g.node.attrs.get<std::int64_t>("dim"))));
}

std::vector<Sample> flip_samples() {
  const auto dim = [](std::int64_t d) { return Attributes{{"dim", d}}; };
  return {view_sample({5, 2}, dim(0)), view_sample({2, 3, 4}, dim(-1)), view_sample({1, 3}, dim(0)),
          view_sample({2, 0}, dim(1)), view_sample({3, 2}, dim(1), i64)};
}

constexpr AttrSpec flip_attrs[] = {{"dim", AttrKind::integer, true, {}, "the dim to reverse"}};
constexpr std::string_view flip_labels[] = {"dim_range"};

// ---- diagonal

struct Pair {
  int first, second;
};
Pair diagonal_dims(const Node& node, int rank) {
  const auto at = [&](std::string_view name) {
    return rules::normalize_axis(node.attrs.get<std::int64_t>(name), rank);
  };
  return {at("dim0"), at("dim1")};
}

TensorType diagonal_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  const int a = ctx.axis(ctx.attr<std::int64_t>("dim0"), type.rank());
  const int b = ctx.axis(ctx.attr<std::int64_t>("dim1"), type.rank());
  ctx.require(a != b, "dim_repeat", fmt::format("dim {} is named twice", a), "a diagonal runs across two dims");
  ctx.require_equal(type.shape[a], type.shape[b], "diagonal_size",
                    fmt::format("dims {} and {} of {} differ: {} and {}", a, b, rules::describe(ctx, 0),
                                type.shape[a].to_string(), type.shape[b].to_string()),
                    "slice the larger one first");
  TensorType result{type.dtype, {}, {}};
  const auto stride = [&](int i) { return type.strides[i]; };
  for (int i = 0; i < type.rank(); ++i) {
    if (i == a || i == b) continue;
    result.shape.push_back(type.shape[i]);
    result.strides.push_back(stride(i));
  }
  result.shape.push_back(rules::one_size(type.shape[a], type.shape[b]));
  result.strides.push_back(stride(a) + stride(b));
  return result;
}

IndexMap diagonal_map(const Graph& graph, const Node& node) {
  const int rank = source(graph, node).rank();
  const auto [a, b] = diagonal_dims(node, rank);
  IndexMap map;
  int next = 0;
  for (int i = 0; i < rank; ++i)
    map.components.push_back({.dim = i == a || i == b ? rank - 2 : next++, .scale = 1, .offset = 0});
  return map;
}

/// Places the gradient on the diagonal of a zero matrix: [.., n] -> [.., n, n] -> the operand's order of dims.
void diagonal_gradient(const GradientContext& g) {
  const int rank = g.operand(0).rank();
  const auto [a, b] = diagonal_dims(g.node, rank);
  const Dim n = g.grad.shape()[rank - 2];
  const Value on_diagonal = ir::eq(ir::iota(g.builder, {n, n}, 0, i64), ir::iota(g.builder, {n, n}, 1, i64));
  const Value matrix = ir::where(on_diagonal, ir::unsqueeze(g.grad, -1), 0.0);  // [.., n, n]
  Ints order;
  std::int64_t next = 0;
  for (int i = 0; i < rank; ++i) order.push_back(i == a ? rank - 2 : (i == b ? rank - 1 : next++));
  g.set(0, ir::permute(matrix, order));
}

std::vector<Sample> diagonal_samples() {
  const auto dims = [](std::int64_t a, std::int64_t b) { return Attributes{{"dim0", a}, {"dim1", b}}; };
  return {view_sample({3, 3}, dims(0, 1)),    view_sample({2, 3, 4, 3}, dims(1, -1)),
          view_sample({3, 2, 3}, dims(2, 0)), view_sample({1, 1}, dims(0, 1)),
          view_sample({0, 0}, dims(0, 1)),    view_sample({2, 2}, dims(0, 1), i64)};
}

constexpr AttrSpec diagonal_attrs[] = {{"dim0", AttrKind::integer, true, {}, "one of the dims"},
                                       {"dim1", AttrKind::integer, true, {}, "the other"}};
constexpr std::string_view diagonal_labels[] = {"dim_range", "dim_repeat", "diagonal_size"};

}  // namespace

constinit const Op slice =
    view_op("slice", "the elements start, start + step, .. below stop of one dim, without a copy", slice_attrs,
            slice_labels, slice_infer, slice_map, slice_gradient, slice_samples);

constinit const Op flip = view_op("flip", "the elements of a dim in reverse order, without a copy", flip_attrs,
                                  flip_labels, flip_infer, flip_map, flip_gradient, flip_samples);

constinit const Op diagonal =
    view_op("diagonal", "removes two dims of equal size and appends their diagonal as the last dim", diagonal_attrs,
            diagonal_labels, diagonal_infer, diagonal_map, diagonal_gradient, diagonal_samples);

}  // namespace lathe::ir::ops
