#include <fmt/core.h>

#include <limits>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/loops.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/layout/reduced_dims.h"

/// Ops that combine each element of a dim with those before it.
namespace lathe::pt2 {

namespace {

Results cumsum_op(const OpCall& call) {
  const DType own = call.dtype(0);
  const Tensor x = call.tensor(0).to(dtype_argument(call, is_float(own) ? own : i64));
  const int axis = axis_argument(call, x.rank());
  return {x.rank() == 0 ? x : cumsum(x, axis)};
}

/// The differences of neighbours along an axis, n times. For bools, a difference is whether the neighbours differ.
Results diff_op(const OpCall& call) {
  constexpr std::int64_t most = 16;
  Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank(), std::int64_t{-1});
  const std::int64_t times = call.integer("n", 1);
  if (times < 0 || times > most) call.fail(fmt::format("the argument n is {}, not 0 to {}", times, most));
  if (call.has(1)) x = concat({call.tensor(1).to(x.dtype()), x}, axis);
  if (call.has(2)) x = concat({x, call.tensor(2).to(x.dtype())}, axis);
  for (std::int64_t i = 0; i < times; ++i) {
    const Dim size = x.shape()[axis];
    if (size.is(0)) break;
    const Tensor next = x.slice(axis, 1, size), before = x.slice(axis, 0, size - 1);
    const auto minus = [](const Tensor& a, const Tensor& b) { return a - b; };
    x = x.dtype() == boolean ? next != before : widened(minus, next, before);
  }
  return {x};
}

/// Combines the elements along an axis one after the other: step(state, element).
LoopResults accumulated(const Tensor& x, int axis, const std::vector<Tensor>& first, const ScanBody& step) {
  LoopResults results = scan(first, {x.transpose(0, axis)}, step);
  for (Tensor& output : results.outputs) output = output.transpose(0, axis);
  return results;
}

/// Returns a slice of one element without its dim, in the order of dims of accumulated().
Tensor first_of(const Tensor& x, int axis) { return x.transpose(0, axis).select(0, 0); }

/// h[t] = x[t] * h[t-1] from h[0] = x[0] on. Integers wrap.
Results cumulative_product(const OpCall& call) {
  const DType own = call.dtype(0), dtype = dtype_argument(call, is_float(own) ? own : i64);
  if (is_complex(dtype)) call.fail("complex numbers are not supported");
  const Tensor x = call.tensor(0).to(dtype);
  const int axis = axis_argument(call, x.rank());
  if (x.rank() == 0 || x.size(axis).is(0)) return {x};
  if (!is_float(dtype)) {
    const ScanBody step = [](std::span<const Tensor> state, std::span<const Tensor> elements) {
      const Tensor product = widened([](const Tensor& a, const Tensor& b) { return a * b; }, state[0], elements[0]);
      return LoopStep{{product}, {product}};
    };
    return {accumulated(x, axis, {ones_like(first_of(x, axis))}, step).outputs[0]};
  }
  // The first element is a term, because the state before it is 0: an infinite factor would make it NaN.
  const Tensor positions = x.graph().arange(x.size(axis).unnamed(), i64);
  const Tensor is_first = importing::along_axis(positions == 0, axis, x.rank()).expand(x.shape());
  return {linear_recurrence(where(is_first, 0, x), where(is_first, x, 0), axis)};
}

/// The extreme elements so far, with the positions of the last ones of equal elements. After a NaN all are NaN.
Results cumulative_extreme(const OpCall& call, bool is_largest) {
  const Tensor given = call.tensor(0), x = comparable(given);
  const int axis = axis_argument(call, x.rank());
  if (x.rank() == 0 || x.size(axis).is(0)) return {given, x.graph().zeros(x.shape(), i64)};
  const Tensor start = first_of(x, axis), none = x.graph().zeros(start.shape(), i64);
  const LoopResults results =
      accumulated(x, axis, {start, none, none}, [&](std::span<const Tensor> state, std::span<const Tensor> elements) {
        const Tensor &best = state[0], &next = elements[0];
        const Tensor is_better = is_largest ? next >= best : next <= best;
        const Tensor changes = is_float(x.dtype()) ? isnan(next) | (is_better & ~isnan(best)) : is_better;
        const Tensor value = where(changes, next, best), at = where(changes, state[2], state[1]);
        return LoopStep{{value, at, state[2] + 1}, {value, at}};
      });
  return {results.outputs[0].to(given.dtype()), results.outputs[1]};
}
Results cumulative_max(const OpCall& call) { return cumulative_extreme(call, true); }
Results cumulative_min(const OpCall& call) { return cumulative_extreme(call, false); }

Results log_cumulative_sum(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank());
  if (x.rank() == 0 || x.size(axis).is(0)) return {x};
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor start = x.graph().full(first_of(x, axis).shape(), -inf, x.dtype());
  const LoopResults results =
      accumulated(x, axis, {start}, [&](std::span<const Tensor> state, std::span<const Tensor> elements) {
        const Tensor &sum = state[0], &next = elements[0];
        const Tensor is_same_infinity = (sum == next) & (abs(sum) == inf);
        const Tensor distance = abs(where(is_same_infinity, 0, sum - next));
        const Tensor total = maximum(sum, next) + log1p(exp(-distance));
        return LoopStep{{total}, {total}};
      });
  return {results.outputs[0]};
}

/// Sums of the areas between neighbours, whose distance is `dx`, or that of their places, operand 1.
Tensor areas(const OpCall& call, int& axis) {
  const Tensor y = call.tensor(0).to(float_of(call.dtype(0)));
  axis = axis_argument(call, y.rank(), std::int64_t{-1});
  const Dim size = y.size(axis).unnamed();
  const auto heights = y.slice(axis, 1, size) + y.slice(axis, 0, size - Dim(1));
  if (!call.has(1)) return heights * (real_argument(call, "dx", 1) / 2);
  const Tensor x = call.tensor(1).to(y.dtype());
  const int along = x.rank() == 1 ? 0 : axis;
  const Tensor distance = x.slice(along, 1, size) - x.slice(along, 0, size - Dim(1));
  return heights * (x.rank() == 1 ? importing::along_axis(distance, axis, y.rank()) : distance) * 0.5;
}
Results trapezoid(const OpCall& call) {
  int axis = 0;
  const Tensor all = areas(call, axis);
  return {all.sum(axis)};
}
Results cumulative_trapezoid(const OpCall& call) {
  int axis = 0;
  const Tensor all = areas(call, axis);
  return {cumsum(all, axis)};
}

}  // namespace

std::span<const OpRecord> aten_scan_ops() {
  static constexpr OpRecord records[] = {
      aten("cumsum", "self", "dim dtype", cumsum_op),
      aten("cumprod", "self", "dim dtype", cumulative_product),
      aten("cummax", "self", "dim", cumulative_max),
      aten("cummin", "self", "dim", cumulative_min),
      aten("logcumsumexp", "self", "dim", log_cumulative_sum),
      aten("diff", "self prepend append", "n dim", diff_op),
      aten("trapezoid.dx", "y", "dx dim", trapezoid),
      aten("trapezoid.x", "y x", "dim", trapezoid),
      aten("cumulative_trapezoid.dx", "y", "dx dim", cumulative_trapezoid),
      aten("cumulative_trapezoid.x", "y x", "dim", cumulative_trapezoid),
  };
  return records;
}

}  // namespace lathe::pt2
