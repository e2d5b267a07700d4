#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

/// Reduces the axes in the argument `dim`, all of them without it. A tensor without dims is reduced as one element.
Tensor reduced(const OpCall& call, const Tensor& x, const auto& reduce) {
  const Tensor source = x.rank() == 0 ? x.unsqueeze(0) : x;
  const Ints axes = x.rank() == 0 ? Ints{0} : axes_argument(call, "dim", x.rank());
  if (x.rank() == 0) call.ignore({"dim", "keepdim"});
  const bool keeps = x.rank() > 0 && call.flag("keepdim", false);
  return reduce(source, axes_of(axes), keeps);
}

/// Sums of integers and bools are of 64 bits.
Results sum_op(const OpCall& call) {
  const DType own = call.dtype(0), fallback = is_float(own) || is_complex(own) ? own : i64;
  const Tensor x = call.tensor(0).to(dtype_argument(call, fallback));
  return {reduced(call, x, [](const Tensor& a, const Axes& axes, bool keeps) { return a.sum(axes, keeps); })};
}
Results mean_op(const OpCall& call) {
  const Tensor x = call.tensor(0).to(dtype_argument(call, call.dtype(0)));
  return {reduced(call, x, [](const Tensor& a, const Axes& axes, bool keeps) { return a.mean(axes, keeps); })};
}
Results product_op(const OpCall& call) {
  const DType own = call.dtype(0);
  const Tensor x = call.tensor(0).to(dtype_argument(call, is_float(own) ? own : i64));
  return {reduced(call, x, [](const Tensor& a, const Axes& axes, bool keeps) { return a.prod(axes, keeps); })};
}

Tensor maximum_over(const Tensor& x, const Axes& axes, bool keeps) {
  if (x.dtype() == boolean) return x.any(axes, keeps);
  return widened([&](const Tensor& a) { return a.max(axes, keeps); }, x);
}
Tensor minimum_over(const Tensor& x, const Axes& axes, bool keeps) {
  if (x.dtype() == boolean) return x.all(axes, keeps);
  return widened([&](const Tensor& a) { return a.min(axes, keeps); }, x);
}
Results amax(const OpCall& call) { return {reduced(call, call.tensor(0), maximum_over)}; }
Results amin(const OpCall& call) { return {reduced(call, call.tensor(0), minimum_over)}; }

Results any_op(const OpCall& call) {
  return {reduced(call, truth(call.tensor(0)),
                  [](const Tensor& a, const Axes& axes, bool keeps) { return a.any(axes, keeps); })};
}
Results all_op(const OpCall& call) {
  return {reduced(call, truth(call.tensor(0)),
                  [](const Tensor& a, const Axes& axes, bool keeps) { return a.all(axes, keeps); })};
}

/// The number that is subtracted from the number of elements: `correction`, or 1 or 0 by `unbiased`.
std::int64_t correction_of(const OpCall& call) {
  if (call.has("unbiased")) return call.flag("unbiased", true) ? 1 : 0;
  const double correction = real_argument(call, "correction", 1);
  if (correction != static_cast<double>(static_cast<std::int64_t>(correction)))
    call.fail(fmt::format("the argument correction is {}, no whole number", correction));
  return static_cast<std::int64_t>(correction);
}
Tensor variance(const OpCall& call) {
  const std::int64_t correction = correction_of(call);
  return reduced(call, call.tensor(0),
                 [&](const Tensor& a, const Axes& axes, bool keeps) { return a.var(axes, keeps, correction); });
}
Tensor mean_of(const OpCall& call) {
  return reduced(call, call.tensor(0),
                 [](const Tensor& a, const Axes& axes, bool keeps) { return a.mean(axes, keeps); });
}
Results variance_op(const OpCall& call) { return {variance(call)}; }
Results deviation_op(const OpCall& call) { return {sqrt(variance(call))}; }
Results variance_and_mean(const OpCall& call) { return {variance(call), mean_of(call)}; }

/// One axis after the other: logsumexp of logsumexp is that of both axes.
Results log_sum_exp(const OpCall& call) {
  Tensor result = float_operand(call);
  Ints axes = axes_argument(call, "dim", result.rank());
  const bool keeps = call.flag("keepdim", false);
  std::ranges::sort(axes, std::greater());
  for (const std::int64_t axis : axes) result = result.logsumexp(axis, keeps);
  return {result};
}

/// The norm of order 1, 2 or infinity.
Results vector_norm(const OpCall& call, std::string_view order_name) {
  const Tensor x = call.tensor(0).to(dtype_argument(call, float_of(call.dtype(0))));
  const double order = real_argument(call, order_name, 2);
  const double inf = std::numeric_limits<double>::infinity();
  if (order != 1 && order != 2 && order != inf && order != -inf)
    call.fail(fmt::format("the norm of order {}; 1, 2 and infinity are supported", order));
  return {reduced(call, x, [&](const Tensor& a, const Axes& axes, bool keeps) {
    if (order == 2) return a.norm(axes, keeps);
    if (order == 1) return a.abs().sum(axes, keeps);
    return order > 0 ? a.abs().max(axes, keeps) : a.abs().min(axes, keeps);
  })};
}
Results linalg_norm(const OpCall& call) { return vector_norm(call, "ord"); }
Results norm_op(const OpCall& call) { return vector_norm(call, "p"); }

Results cumsum_op(const OpCall& call) {
  const DType own = call.dtype(0);
  const Tensor x = call.tensor(0).to(dtype_argument(call, is_float(own) ? own : i64));
  return {x.rank() == 0 ? x : cumsum(x, axis_argument(call, x.rank()))};
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
    const Tensor next = x.slice(axis, 1, size), before = x.slice(axis, 0, size - 1);
    x = x.dtype() == boolean ? next != before : next - before;
  }
  return {x};
}

/// Counts the elements in each of equal parts of a range, whose end is part of the last one.
Results histogram(const OpCall& call) {
  const double low = real_argument(call, "min", 0), high = real_argument(call, "max", 0);
  const std::int64_t bins = call.integer("bins", 100);
  if (!(low < high) || bins < 1)
    call.fail(fmt::format("{} bins from {} to {}", bins, low, high), "import_unsupported",
              "give a range and a number of bins; a range of the elements themselves is not supported");
  const Tensor given = call.tensor(0), x = given.reshape({given.shape().numel()});
  const Tensor bin = minimum(((x - low) * static_cast<double>(bins) / (high - low)).floor(), bins - 1);
  const Tensor is_inside = (x >= low) & (x <= high);
  const Tensor numbers = call.graph().arange(bins, i64).to(x.dtype());
  return {((bin.unsqueeze(1) == numbers) & is_inside.unsqueeze(1)).to(x.dtype()).sum(0)};
}

}  // namespace

std::span<const OpRecord> aten_reduction_ops() {
  static constexpr OpRecord records[] = {
      aten("sum", "self", "dtype", sum_op),
      aten("sum.dim_IntList", "self", "dim keepdim dtype", sum_op),
      aten("mean", "self", "dtype", mean_op),
      aten("mean.dim", "self", "dim keepdim dtype", mean_op),
      aten("prod", "self", "dtype", product_op),
      aten("prod.dim_int", "self", "dim keepdim dtype", product_op),
      aten("amax", "self", "dim keepdim", amax),
      aten("amin", "self", "dim keepdim", amin),
      aten("max", "self", "", amax),
      aten("min", "self", "", amin),
      aten("any", "self", "", any_op),
      aten("any.dim", "self", "dim keepdim", any_op),
      aten("any.dims", "self", "dim keepdim", any_op),
      aten("all", "self", "", all_op),
      aten("all.dim", "self", "dim keepdim", all_op),
      aten("all.dims", "self", "dim keepdim", all_op),
      aten("var", "self", "unbiased", variance_op),
      aten("var.dim", "self", "dim unbiased keepdim", variance_op),
      aten("var.correction", "self", "dim correction keepdim", variance_op),
      aten("std", "self", "unbiased", deviation_op),
      aten("std.dim", "self", "dim unbiased keepdim", deviation_op),
      aten("std.correction", "self", "dim correction keepdim", deviation_op),
      aten("var_mean.correction", "self", "dim correction keepdim", variance_and_mean),
      aten("logsumexp", "self", "dim keepdim", log_sum_exp),
      aten("linalg_vector_norm", "self", "ord dim keepdim dtype", linalg_norm),
      aten("norm.Scalar", "self", "p", norm_op),
      aten("norm.ScalarOpt_dim", "self", "p dim keepdim", norm_op),
      aten("cumsum", "self", "dim dtype", cumsum_op),
      aten("histc", "self", "bins min max", histogram),
      aten("diff", "self prepend append", "n dim", diff_op),
  };
  return records;
}

}  // namespace lathe::pt2
