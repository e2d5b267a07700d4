#include <algorithm>
#include <functional>
#include <numeric>

#include "frontend/ops/loops/loops.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

/// A reduction of all given axes, which become sizes of 1.
using Reduce = Tensor (*)(const Tensor& x, const Ints& axes);

Tensor reduced_sum(const Tensor& x, const Ints& axes) {
  return widened([&](const Tensor& a) { return a.sum(axes_of(axes), true); }, x);
}
Tensor reduced_mean(const Tensor& x, const Ints& axes) {
  if (is_float(x.dtype())) return x.mean(axes_of(axes), true);
  const Tensor wide = x.to(i64), sums = wide.sum(axes_of(axes), true);
  Dim count = 1;
  for (const std::int64_t axis : axes) count = count * x.size(axis);
  return (sums / x.graph().dim_value(count)).to(x.dtype());
}
Tensor reduced_max(const Tensor& x, const Ints& axes) {
  if (x.dtype() == boolean) return x.any(axes_of(axes), true);
  return widened([&](const Tensor& a) { return a.max(axes_of(axes), true); }, x);
}
Tensor reduced_min(const Tensor& x, const Ints& axes) {
  if (x.dtype() == boolean) return x.all(axes_of(axes), true);
  return widened([&](const Tensor& a) { return a.min(axes_of(axes), true); }, x);
}
Tensor reduced_product(const Tensor& x, const Ints& axes) {
  return widened([&](const Tensor& a) { return a.prod(axes_of(axes), true); }, x);
}
Tensor reduced_l1(const Tensor& x, const Ints& axes) { return reduced_sum(abs(x), axes); }
Tensor reduced_squares(const Tensor& x, const Ints& axes) { return reduced_sum(x * x, axes); }
Tensor reduced_l2(const Tensor& x, const Ints& axes) {
  if (is_float(x.dtype())) return sqrt(reduced_squares(x, axes));
  return sqrt(reduced_squares(x.to(f64), axes)).to(x.dtype());
}
Tensor reduced_log_sum(const Tensor& x, const Ints& axes) {
  if (is_float(x.dtype())) return log(reduced_sum(x, axes));
  return log(reduced_sum(x.to(f64), axes)).to(x.dtype());
}
/// One axis after the other: logsumexp of logsumexp is that of both axes.
Tensor reduced_log_sum_exp(const Tensor& x, const Ints& axes) {
  Tensor result = is_float(x.dtype()) ? x : x.to(f64);
  for (const std::int64_t axis : axes) result = result.logsumexp(axis, true);
  return result.to(x.dtype());
}

/// No axes: all of them, or none if noop_with_empty_axes is set.
template <Reduce reduce>
Results reduction(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const bool keeps = call.flag("keepdims", true), is_noop = call.flag("noop_with_empty_axes", false);
  Ints axes = given_axes(call, 1, x.rank()).value_or(Ints());
  const bool is_empty = axes.empty();
  if (is_empty && !is_noop) {
    axes.resize(static_cast<std::size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  // Lathe's reductions take no axes as all axes: here, the result is the function of each element alone.
  Tensor result = axes.empty() ? reduce(x.unsqueeze(0), {0}).squeeze(0) : reduce(x, axes);
  if (keeps || axes.empty()) return {result};
  std::ranges::sort(axes, std::greater());
  for (const std::int64_t axis : axes) result = result.squeeze(axis);
  return {result};
}

/// The position of the first extreme element along an axis, or of the last one.
Results position(const OpCall& call, const auto& find) {
  const Tensor given = call.tensor(0), x = is_byte(given.dtype()) ? given.to(i32) : given;
  const int axis = call.axis(call.integer("axis", 0), x.rank());
  Tensor at = call.flag("select_last_index", false)
                  ? call.graph().dim_value(x.size(axis)) - 1 - find(x.flip(axis), axis)
                  : find(x, axis);
  return {call.flag("keepdims", true) ? at.unsqueeze(axis) : at};
}
Results argmax_op(const OpCall& call) {
  return position(call, [](const Tensor& x, int axis) { return argmax(x, axis); });
}
Results argmin_op(const OpCall& call) {
  return position(call, [](const Tensor& x, int axis) { return argmin(x, axis); });
}

Results cumsum_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer(1, "the axis"), x.rank());
  return {cumsum(x, axis, {.exclusive = call.flag("exclusive", false), .reverse = call.flag("reverse", false)})};
}

/// The products along an axis, element by element.
Results cumprod_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer(1, "the axis"), x.rank());
  const bool is_exclusive = call.flag("exclusive", false);
  const Tensor sequence = x.transpose(0, axis);
  Shape shape = sequence.shape();
  shape.set(0, 1);
  const Tensor first = call.graph().ones(shape, x.dtype()).squeeze(0);
  const auto [last, all] = scan(first, sequence,
                                [&](const Tensor& product, const Tensor& element) {
                                  const Tensor next = product * element;
                                  return std::pair(next, is_exclusive ? product : next);
                                },
                                {.name = "cumprod", .reverse = call.flag("reverse", false)});
  return {all.transpose(0, axis)};
}

constexpr std::string_view with_attribute = "axes keepdims", with_operand = "keepdims noop_with_empty_axes";

}  // namespace

std::span<const OpRecord> reduction_ops() {
  static constexpr OpRecord records[] = {
      {"ReduceSum", 1, 12, with_attribute, reduction<reduced_sum>},
      {"ReduceSum", 13, latest, with_operand, reduction<reduced_sum>},
      {"ReduceMean", 1, 17, with_attribute, reduction<reduced_mean>},
      {"ReduceMean", 18, latest, with_operand, reduction<reduced_mean>},
      {"ReduceMax", 1, 17, with_attribute, reduction<reduced_max>},
      {"ReduceMax", 18, latest, with_operand, reduction<reduced_max>},
      {"ReduceMin", 1, 17, with_attribute, reduction<reduced_min>},
      {"ReduceMin", 18, latest, with_operand, reduction<reduced_min>},
      {"ReduceProd", 1, 17, with_attribute, reduction<reduced_product>},
      {"ReduceProd", 18, latest, with_operand, reduction<reduced_product>},
      {"ReduceL1", 1, 17, with_attribute, reduction<reduced_l1>},
      {"ReduceL1", 18, latest, with_operand, reduction<reduced_l1>},
      {"ReduceL2", 1, 17, with_attribute, reduction<reduced_l2>},
      {"ReduceL2", 18, latest, with_operand, reduction<reduced_l2>},
      {"ReduceSumSquare", 1, 17, with_attribute, reduction<reduced_squares>},
      {"ReduceSumSquare", 18, latest, with_operand, reduction<reduced_squares>},
      {"ReduceLogSum", 1, 17, with_attribute, reduction<reduced_log_sum>},
      {"ReduceLogSum", 18, latest, with_operand, reduction<reduced_log_sum>},
      {"ReduceLogSumExp", 1, 17, with_attribute, reduction<reduced_log_sum_exp>},
      {"ReduceLogSumExp", 18, latest, with_operand, reduction<reduced_log_sum_exp>},
      {"ArgMax", 1, 11, "axis keepdims", argmax_op},
      {"ArgMax", 12, latest, "axis keepdims select_last_index", argmax_op},
      {"ArgMin", 1, 11, "axis keepdims", argmin_op},
      {"ArgMin", 12, latest, "axis keepdims select_last_index", argmin_op},
      {"CumProd", 26, latest, "exclusive reverse", cumprod_op},
      {"CumSum", 11, latest, "exclusive reverse", cumsum_op},
  };
  return records;
}

}  // namespace lathe::onnx
