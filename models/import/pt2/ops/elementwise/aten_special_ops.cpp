#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/ops/special_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Special functions.
namespace lathe::pt2 {

namespace {

template <Tensor (*function)(const Tensor&)>
Results special(const OpCall& call) {
  return {function(float_operand(call))};
}
template <int order, bool is_scaled>
Tensor bessel(const Tensor& x) {
  return importing::bessel_i(x, order, is_scaled);
}

/// The distribution function of the normal distribution, and its inverse.
Tensor normal_distribution(const Tensor& x) { return importing::erfc(x * -std::numbers::sqrt2 * 0.5) * 0.5; }
Tensor normal_quantile(const Tensor& p) {
  return importing::wider(p, [](const Tensor& x) { return importing::erfinv(x * 2.0 - 1.0) * std::numbers::sqrt2; });
}

/// -x log(x); 0 at 0, and -inf below.
Tensor entropy(const Tensor& x) {
  const Tensor is_positive = x > 0.0, other = where(x < 0.0, -std::numeric_limits<double>::infinity(), x);
  return where(is_positive, -x * log(where(is_positive, x, 1)), other);
}

Results xlog1py_op(const OpCall& call) {
  const DType dtype = float_of(promoted(call, {0, 1}));
  return {importing::xlogy(operand_as(call, 0, dtype), operand_as(call, 1, dtype) + 1.0)};
}

/// log of the multivariate gamma function.
Results multivariate_lgamma(const OpCall& call) {
  const Tensor x = float_operand(call);
  const std::int64_t p = call.integer("p");
  constexpr std::int64_t most = 64;
  if (p < 1 || p > most) call.fail(fmt::format("the argument p is {}, not 1 to {}", p, most), "import_attribute");
  Tensor sum = importing::lgamma(x) + static_cast<double>(p * (p - 1)) / 4 * std::log(std::numbers::pi);
  for (std::int64_t j = 1; j < p; ++j) sum = sum + importing::lgamma(x - static_cast<double>(j) / 2);
  return {sum};
}

Results polygamma_op(const OpCall& call) {
  const std::int64_t order = call.integer("n");
  constexpr int most = importing::most_polygamma;
  if (order < 0 || order > most)
    call.fail(fmt::format("the argument n is {}, not 0 to {}", order, most), "import_attribute");
  const Tensor x = float_operand(call);
  return {order == 0 ? importing::digamma(x) : importing::polygamma(x, static_cast<int>(order))};
}

}  // namespace

std::span<const OpRecord> aten_special_ops() {
  static constexpr OpRecord records[] = {
      aten("lgamma", "self", "", special<importing::lgamma>),
      aten("digamma", "self", "", special<importing::digamma>),
      aten("polygamma", "self", "n", polygamma_op),
      aten("mvlgamma", "self", "p", multivariate_lgamma),
      aten("erfinv", "self", "", special<importing::erfinv>),
      aten("i0", "self", "", special<bessel<0, false>>),
      aten("special_i0e", "self", "", special<bessel<0, true>>),
      aten("special_i1", "self", "", special<bessel<1, false>>),
      aten("special_i1e", "self", "", special<bessel<1, true>>),
      aten("special_ndtr", "self", "", special<normal_distribution>),
      aten("special_ndtri", "self", "", special<normal_quantile>),
      aten("special_entr", "self", "", special<entropy>),
      aten("special_xlog1py", "self other", "", xlog1py_op),
      aten("special_xlog1py.self_scalar", "self other", "", xlog1py_op),
      aten("special_xlog1py.other_scalar", "self other", "", xlog1py_op),
  };
  return records;
}

}  // namespace lathe::pt2
