#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "models/import/ops/vector_norms.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/layout/reduced_dims.h"

namespace lathe::pt2 {

namespace {

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

/// Over an empty list of dims, each element is its own result.
bool is_over_no_dims(const OpCall& call) {
  const auto* dims = call.find<Ints>("dim");
  return dims && dims->empty();
}
/// Reduces whether elements are true. The result for u8 is u8.
Results of_truth(const OpCall& call, const auto& reduce) {
  const Tensor x = truth(call.tensor(0)), y = is_over_no_dims(call) ? x : reduced(call, x, reduce);
  return {y.to(call.dtype(0) == u8 ? u8 : boolean)};
}
Results any_op(const OpCall& call) {
  return of_truth(call, [](const Tensor& a, const Axes& axes, bool keeps) { return a.any(axes, keeps); });
}
Results all_op(const OpCall& call) {
  return of_truth(call, [](const Tensor& a, const Axes& axes, bool keeps) { return a.all(axes, keeps); });
}

/// The number that is subtracted from the number of elements: `correction`, or 1 or 0 by `unbiased`.
double correction_of(const OpCall& call) {
  if (call.has("unbiased")) return call.flag("unbiased", true) ? 1 : 0;
  return real_argument(call, "correction", 1);
}
Tensor variance(const OpCall& call) {
  const double correction = correction_of(call);
  const auto whole = static_cast<std::int64_t>(correction);
  return reduced(call, call.tensor(0), [&](const Tensor& a, const Axes& axes, bool keeps) {
    if (static_cast<double>(whole) == correction) return a.var(axes, keeps, whole);
    const Tensor count = ones_like(a).to(f64).sum(axes, keeps);
    return a.var(axes, keeps, 0) * (count / maximum(count - correction, 0)).to(a.dtype());
  });
}
Tensor mean_of(const OpCall& call) {
  return reduced(call, call.tensor(0),
                 [](const Tensor& a, const Axes& axes, bool keeps) { return a.mean(axes, keeps); });
}
Results variance_op(const OpCall& call) { return {variance(call)}; }
/// Where all elements are equal, the gradient is 0.
Tensor deviation(const OpCall& call) {
  const Tensor squared = variance(call), is_zero = squared == 0;
  return where(is_zero, 0, sqrt(where(is_zero, 1, squared)));
}
Results deviation_op(const OpCall& call) { return {deviation(call)}; }
Results variance_and_mean(const OpCall& call) { return {variance(call), mean_of(call)}; }
Results deviation_and_mean(const OpCall& call) { return {deviation(call), mean_of(call)}; }

/// One axis after the other: logsumexp of logsumexp is that of both axes.
Results log_sum_exp(const OpCall& call) {
  Tensor result = float_operand(call);
  Ints axes = axes_argument(call, "dim", result.rank());
  const bool keeps = call.flag("keepdim", false);
  std::ranges::sort(axes, std::greater());
  for (const std::int64_t axis : axes) result = result.logsumexp(axis, keeps);
  return {result};
}

Results vector_norm(const OpCall& call, std::string_view order_name) {
  const Tensor x = call.tensor(0).to(dtype_argument(call, float_of(call.dtype(0))));
  const double order = real_argument(call, order_name, 2);
  return {reduced(call, x, [&](const Tensor& a, const Axes& axes, bool keeps) {
    return importing::vector_norm(a, order, axes, keeps);
  })};
}
Results linalg_norm(const OpCall& call) { return vector_norm(call, "ord"); }
Results norm_op(const OpCall& call) { return vector_norm(call, "p"); }

/// Sums, and means, of the elements that are not NaN.
Results nan_sum(const OpCall& call) {
  const DType own = call.dtype(0);
  const Tensor given = call.tensor(0), x = is_float(own) ? where(isnan(given), 0, given) : given;
  return {reduced(call, x.to(dtype_argument(call, is_float(own) ? own : i64)),
                  [](const Tensor& a, const Axes& axes, bool keeps) { return a.sum(axes, keeps); })};
}
Results nan_mean(const OpCall& call) {
  const Tensor x = call.tensor(0).to(dtype_argument(call, call.dtype(0)));
  if (!is_float(x.dtype())) call.fail(fmt::format("the mean of {}", name(x.dtype())), "import_dtype");
  const Tensor counts = ~isnan(x);
  const auto sum = [](const Tensor& a, const Axes& axes, bool keeps) { return a.sum(axes, keeps); };
  return {reduced(call, where(counts, x, 0), sum) / reduced(call, counts.to(x.dtype()), sum)};
}

Results count_nonzero(const OpCall& call) {
  return {reduced(call, truth(call.tensor(0)).to(i64),
                  [](const Tensor& a, const Axes& axes, bool) { return a.sum(axes); })};
}

Results smallest_and_largest(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {reduced(call, x, minimum_over), reduced(call, x, maximum_over)};
}

/// Counts the elements in each of equal parts of a range, whose end is part of the last one.
Results histogram(const OpCall& call) {
  const double low = real_argument(call, "min", 0), high = real_argument(call, "max", 0);
  const std::int64_t bins = call.integer("bins", 100);
  if (!(low < high) || bins < 1)
    call.fail(fmt::format("{} bins from {} to {}", bins, low, high), "import_unsupported",
              "give a range and a number of bins; a range of the elements themselves is not supported");
  const Tensor given = call.tensor(0), x = as_vector(given);
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
      aten("var_mean", "self", "unbiased", variance_and_mean),
      aten("var_mean.dim", "self", "dim unbiased keepdim", variance_and_mean),
      aten("std_mean", "self", "unbiased", deviation_and_mean),
      aten("std_mean.dim", "self", "dim unbiased keepdim", deviation_and_mean),
      aten("std_mean.correction", "self", "dim correction keepdim", deviation_and_mean),
      aten("var_mean.correction", "self", "dim correction keepdim", variance_and_mean),
      aten("logsumexp", "self", "dim keepdim", log_sum_exp),
      aten("linalg_vector_norm", "self", "ord dim keepdim dtype", linalg_norm),
      aten("norm.Scalar", "self", "p", norm_op),
      aten("norm.ScalarOpt_dim", "self", "p dim keepdim", norm_op),
      aten("nansum", "self", "dim keepdim dtype", nan_sum),
      aten("nanmean", "self", "dim keepdim dtype", nan_mean),
      aten("count_nonzero", "self", "dim", count_nonzero),
      aten("count_nonzero.dim_IntList", "self", "dim", count_nonzero),
      aten("aminmax", "self", "dim keepdim", smallest_and_largest),
      aten("histc", "self", "bins min max", histogram),
  };
  return records;
}

}  // namespace lathe::pt2
