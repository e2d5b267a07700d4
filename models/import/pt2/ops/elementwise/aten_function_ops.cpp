#include <cmath>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

/// Functions of one operand, as records of one line each. Integers become floats.
template <Tensor (*function)(const Tensor&, Where)>
Results unary(const OpCall& call) {
  return {function(float_operand(call), Where::current())};
}
template <Tensor (*function)(const Tensor&)>
Results composed(const OpCall& call) {
  return {function(float_operand(call))};
}

/// Functions that leave integers as they are.
template <Tensor (*function)(const Tensor&, Where)>
Results rounding(const OpCall& call) {
  return {is_float(call.dtype(0)) ? Value(function(call.tensor(0), Where::current())) : call.operand(0)};
}

Tensor exp2(const Tensor& x) { return exp(x * std::log(2.0)); }
Tensor log2(const Tensor& x) { return log(x) / std::log(2.0); }
Tensor log10(const Tensor& x) { return log(x) / std::log(10.0); }
Tensor log_sigmoid(const Tensor& x) { return -softplus(-x); }

Results exponential(const OpCall& call) {
  if (!is_complex(call.dtype(0))) return {exp(float_operand(call))};
  const Tensor parts = view_as_real(call.tensor(0));
  return {polar(exp(parts.select(-1, 0)), parts.select(-1, 1))};
}

Results is_nan(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {is_float(x.dtype()) ? isnan(x) : x.graph().zeros(x.shape(), boolean)};
}
Results is_inf(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (!is_float(x.dtype())) return {x.graph().zeros(x.shape(), boolean)};
  return {abs(x) == std::numeric_limits<double>::infinity()};
}
Results is_finite(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {is_float(x.dtype()) ? isfinite(x) : x.graph().ones(x.shape(), boolean)};
}

/// NaN becomes a number, 0 unless it is given, and infinities the largest finite numbers unless they are given.
Results nan_to_num(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (!is_float(x.dtype())) {
    call.ignore({"nan", "posinf", "neginf"});
    return {x};
  }
  const auto constant = [&](double value) { return call.graph().constant(value, x.dtype()); };
  const double inf = std::numeric_limits<double>::infinity();
  const double largest = x.dtype() == f64   ? std::numeric_limits<double>::max()
                         : x.dtype() == f16 ? 65504.0
                         : x.dtype() == f32 ? std::numeric_limits<float>::max()
                                            : 0x1.fep127;
  const Tensor finite = where(x == inf, constant(real_argument(call, "posinf", largest)),
                              where(x == -inf, constant(real_argument(call, "neginf", -largest)), x));
  return {where(isnan(x), constant(real_argument(call, "nan", 0)), finite)};
}

/// Rounds to a number of decimal places, or of zeros before the point if it is negative.
Results round_to_decimals(const OpCall& call) {
  const Tensor x = float_operand(call);
  const double decimals = static_cast<double>(call.integer("decimals")), scale = std::pow(10, std::abs(decimals));
  return {decimals < 0 ? round(x / scale) * scale : round(x * scale) / scale};
}

}  // namespace

std::span<const OpRecord> aten_function_ops() {
  static constexpr OpRecord records[] = {
      aten("exp", "self", "", exponential),
      aten("exp2", "self", "", composed<exp2>),
      aten("expm1", "self", "", unary<expm1>),
      aten("log", "self", "", unary<log>),
      aten("log2", "self", "", composed<log2>),
      aten("log10", "self", "", composed<log10>),
      aten("log1p", "self", "", unary<log1p>),
      aten("log_sigmoid", "self", "", composed<log_sigmoid>),
      aten("sqrt", "self", "", unary<sqrt>),
      aten("rsqrt", "self", "", unary<rsqrt>),
      aten("reciprocal", "self", "", unary<reciprocal>),
      aten("sin", "self", "", unary<sin>),
      aten("cos", "self", "", unary<cos>),
      aten("tan", "self", "", composed<importing::tan>),
      aten("asin", "self", "", composed<importing::asin>),
      aten("acos", "self", "", composed<importing::acos>),
      aten("atan", "self", "", composed<importing::atan>),
      aten("sinh", "self", "", composed<importing::sinh>),
      aten("cosh", "self", "", composed<importing::cosh>),
      aten("asinh", "self", "", composed<importing::asinh>),
      aten("acosh", "self", "", composed<importing::acosh>),
      aten("atanh", "self", "", composed<importing::atanh>),
      aten("tanh", "self", "", unary<tanh>),
      aten("erf", "self", "", unary<erf>),
      aten("floor", "self", "", rounding<floor>),
      aten("ceil", "self", "", rounding<ceil>),
      aten("round", "self", "", rounding<round>),
      aten("round.decimals", "self", "decimals", round_to_decimals),
      aten("trunc", "self", "", rounding<trunc>),
      aten("isnan", "self", "", is_nan),
      aten("isinf", "self", "", is_inf),
      aten("isfinite", "self", "", is_finite),
      aten("nan_to_num", "self", "nan posinf neginf", nan_to_num),
  };
  return records;
}

}  // namespace lathe::pt2
