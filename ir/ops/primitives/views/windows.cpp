#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/dilated.h"
#include "ir/ops/primitives/views/view_record.h"

namespace lathe::ir::ops {

namespace {

/// The windows of one dim: window o has the elements o * step + k * dilation for k < size.
struct Windows {
  std::int64_t size, step, dilation;
  std::int64_t span() const { return dilation * (size - 1) + 1; }
};

Windows windows_of(const Attributes& attrs) {
  const auto at = [&](std::string_view name) { return attrs.get<std::int64_t>(name); };
  return {at("size"), at("step"), at("dilation")};
}

/// Returns the number of windows, rounded down.
Dim window_count(const InferContext& ctx, const Dim& size, const Windows& windows) {
  const Dim last = size - Dim(windows.span());  // the start of the last window, if the step reaches it
  for (std::int64_t r = 0; r < std::min<std::int64_t>(windows.step, 4096); ++r)
    if (const auto count = (last - Dim(r)).divided_by(windows.step)) return *count + Dim(1);
  if (const auto number = last.value()) return Dim(*number / windows.step + 1);
  ctx.fail("unfold_step",
           fmt::format("the number of windows of {} elements at steps of {} in {} is not known to be whole",
                       windows.span(), windows.step, size.to_string()),
           "write the size of the dim so that the step divides it, such as 2 * n");
}

TensorType unfold_infer(const InferContext& ctx) {
  TensorType result = ctx.operand(0);
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), result.rank());
  const Windows windows = windows_of(ctx.attrs());
  ctx.require(windows.size >= 1, "unfold_size", fmt::format("a window has {} elements", windows.size),
              "give 1 or more");
  ctx.require(windows.step >= 1 && windows.dilation >= 1, "unfold_step",
              fmt::format("the step is {} and the dilation {}", windows.step, windows.dilation),
              "both are 1 or more");
  const Dim size = result.shape[d];
  rules::require_at_most(
      ctx, windows.span(), size, "unfold_size",
      fmt::format("a window of {} elements with dilation {} spans {}, and dim {} of {} has {}", windows.size,
                  windows.dilation, windows.span(), d, rules::describe(ctx, 0), size.to_string()),
      "pad the dim, or use smaller windows");
  const Dim count = window_count(ctx, size.unnamed(), windows);
  const Dim stride = result.strides[d];
  result.shape.set(d, count == size ? size : count);
  result.strides.set(static_cast<std::size_t>(d), stride * Dim(windows.step));
  result.shape.push_back(Dim(windows.size));
  result.strides.push_back(stride * Dim(windows.dilation));
  return result;
}

IndexMap unfold_map(const Graph& graph, const Node& node) {
  const int rank = source(graph, node).rank();
  const int d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank);
  const Windows windows = windows_of(node.attrs);
  IndexMap map;
  for (int i = 0; i < rank; ++i) map.components.push_back({.dim = i});
  map.components[static_cast<std::size_t>(d)] = {
      .dim = d, .scale = windows.step, .offset = 0, .more = {{rank, windows.dilation}}};
  return map;
}

/// Moves element o of dim d to element o * step of a dim of `size` elements, after `before` zeros.
Value placed(const Value& a, int d, std::int64_t step, const Dim& before, const Dim& size) {
  const Value apart = ir::spread(a, d, step);
  return ir::pad(apart, d, before, size - before - apart.shape()[d].unnamed());
}

/// An element gets the sum of the gradients of all windows that it is in. Few elements per window: one term for each
/// position in a window. Many: the gradients are scattered to their elements.
void unfold_gradient(const GradientContext& g) {
  constexpr std::int64_t few = 16;
  const int rank = g.operand(0).rank();
  const int d = rules::normalize_axis(g.node.attrs.get<std::int64_t>("dim"), rank);
  const Windows windows = windows_of(g.node.attrs);
  const Dim size = g.operand(0).shape()[d].unnamed();
  if (windows.size > few) {
    const Dim count = g.grad.shape()[d].unnamed();
    const auto positions = [&](const Shape& shape, std::int64_t scale) {
      return ir::mul(ir::iota(g.builder, shape, shape[0].is(1) ? 1 : 0, i64), static_cast<double>(scale));
    };
    const Value indices =
        ir::add(positions({count, Dim(1)}, windows.step), positions({Dim(1), Dim(windows.size)}, windows.dilation));
    std::vector<std::int64_t> order;  // the window's dim directly after dim d
    for (int i = 0; i < rank; ++i) {
      order.push_back(i);
      if (i == d) order.push_back(rank);
    }
    return g.set(0, ir::scatter_add(indices, ir::permute(g.grad, order), size, d));
  }
  std::optional<Value> sum;
  for (std::int64_t k = 0; k < windows.size; ++k) {
    const Value term = placed(ir::select(g.grad, rank, k), d, windows.step, Dim(k * windows.dilation), size);
    sum = sum ? ir::add(*sum, term) : term;
  }
  g.set(0, *sum);
}

std::vector<Sample> unfold_samples() {
  const auto windows = [](std::int64_t dim, std::int64_t size, std::int64_t step, std::int64_t dilation) {
    return Attributes{{"dim", dim}, {"size", size}, {"step", step}, {"dilation", dilation}};
  };
  return {view_sample({5}, windows(0, 3, 1, 1)),         view_sample({2, 7}, windows(1, 3, 2, 1)),
          view_sample({8, 2}, windows(0, 2, 3, 2)),      view_sample({2, 6, 3}, windows(-2, 2, 2, 1)),
          view_sample({4}, windows(0, 1, 1, 1)),         view_sample({0, 4}, windows(1, 2, 1, 1)),
          view_sample({3, 4}, windows(1, 4, 1, 1)),      view_sample({24}, windows(0, 18, 2, 1)),
          view_sample({2, 40, 2}, windows(1, 17, 3, 2)), view_sample({2, 5}, windows(1, 2, 1, 2), i64)};
}

constexpr AttrSpec unfold_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the dim that the windows move along"},
    {"size", AttrKind::integer, true, {}, "the number of elements of a window"},
    {"step", AttrKind::integer, false, std::int64_t{1}, "the distance between windows"},
    {"dilation", AttrKind::integer, false, std::int64_t{1}, "the distance between the elements of a window"},
};
constexpr std::string_view unfold_labels[] = {"dim_range", "unfold_size", "unfold_step"};

}  // namespace

constinit const Op unfold =
    view_op("unfold", "windows along a dim, whose elements are a new last dim, without a copy", unfold_attrs,
            unfold_labels, unfold_infer, unfold_map, unfold_gradient, unfold_samples);

}  // namespace lathe::ir::ops
