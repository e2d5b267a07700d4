#include <fmt/core.h>

#include <functional>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/elementwise_functions.h"
#include "models/import/ops/sizes/dim_functions.h"
#include "models/import/ops/sizes/size_checks.h"

namespace lathe::onnx {

namespace {

using importing::combine;

template <class Op>
Results arithmetic(const OpCall& call) {
  return {widened([](const Tensor& a, const Tensor& b) { return Op()(a, b); }, call.tensor(0), call.tensor(1))};
}

struct Add {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a + b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return a + b; }
};
struct Sub {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a - b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return a - b; }
};
struct Mul {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a * b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return a * b; }
};
/// Integers are divided towards zero.
struct Div {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a / b; }
};
struct Maximum {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return maximum(a, b); }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return importing::larger(a, b); }
};
struct Minimum {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return minimum(a, b); }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return importing::smaller(a, b); }
};

template <class Op>
std::optional<DimTensor> folded(const OpCall& call) {
  std::optional<DimTensor> result = call.operand(0).dims();
  for (std::size_t i = 1; i < call.count() && result; ++i)
    result = combine(*result, *call.operand(i).dims(), result->dtype, Op());
  return result;
}

/// Returns a / b towards zero if it is a polynomial. For a number of windows, such as (8 * h - 1) / 8, it is h - 1
/// unless h is 0, which is checked at run time.
std::optional<Dim> dim_quotient(const OpCall& call, const Dim& a, const Dim& b) {
  if (const auto exact = importing::quotient(a, b, false)) return exact;
  std::optional<Dim> floor = b.value().value_or(0) > 0 ? importing::quotient(a, b, true) : std::nullopt;
  if (!floor) return std::nullopt;
  const Dim positive = *floor * b + b;
  if (positive.value() || importing::sign_of(positive) != importing::Sign::not_negative) return std::nullopt;
  importing::require_at_least(
      call, 1, positive, fmt::format("({}) / {}, which is rounded, is not negative", a.to_string(), b.to_string()));
  return floor;
}

std::optional<DimTensor> folded_quotient(const OpCall& call) {
  const DimTensor a = *call.operand(0).dims(), b = *call.operand(1).dims();
  return combine(a, b, a.dtype, [&](const Dim& x, const Dim& y) {
    const std::optional<Dim> result = dim_quotient(call, x, y);
    if (!result) call.note_division(x, y);
    return result;
  });
}

template <class Op>
Results variadic(const OpCall& call) {
  Tensor result = call.tensor(0);
  for (std::size_t i = 1; i < call.count(); ++i)
    result = widened([](const Tensor& a, const Tensor& b) { return Op()(a, b); }, result, call.tensor(i));
  return {result};
}

Results mean_of_operands(const OpCall& call) {
  return {variadic<Add>(call)[0].in(call.graph()) / static_cast<double>(call.count())};
}

Results mod(const OpCall& call) {
  const bool truncates = call.flag("fmod", false);
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (is_float(a.dtype())) return {importing::float_remainder(a, b, truncates)};
  return {widened(
      [&](const Tensor& x, const Tensor& y) { return truncates ? x % y : importing::floor_remainder(x, y); }, a, b)};
}

/// Remainders of sizes that are not negative are the same for both kinds of rounding.
std::optional<DimTensor> folded_mod(const OpCall& call) {
  const bool truncates = call.flag("fmod", false);
  const DimTensor a = *call.operand(0).dims(), b = *call.operand(1).dims();
  return combine(a, b, a.dtype, [&](const Dim& x, const Dim& y) -> std::optional<Dim> {
    const importing::Sign sign = importing::sign_of(x);
    if (truncates && sign != importing::Sign::positive && sign != importing::Sign::not_negative) return std::nullopt;
    std::optional<Dim> rest = importing::remainder(x, y);
    if (!rest) call.note_division(x, y);
    return rest;
  });
}

/// The result has the dtype of the base. Powers of integers wrap.
Results power(const OpCall& call) {
  const Tensor base = call.tensor(0), exponent = call.tensor(1);
  if (!is_float(base.dtype()) && !is_float(exponent.dtype())) {
    const DType wide = base.dtype() == i64 || exponent.dtype() == i64 ? i64 : i32;
    return {importing::integer_power(base.to(wide), exponent.to(wide)).to(base.dtype())};
  }
  if (is_float(base.dtype()) && (base.dtype() == exponent.dtype() || !is_float(exponent.dtype())))
    return {pow(base, exponent.to(base.dtype()))};
  const Tensor result = pow(base.to(f64), exponent.to(f64));
  return {(is_float(base.dtype()) ? result : result.trunc()).to(base.dtype())};
}

Results negate(const OpCall& call) {
  return {widened([](const Tensor& a) { return -a; }, call.tensor(0))};
}
std::optional<DimTensor> folded_negation(const OpCall& call) {
  const DimTensor a = *call.operand(0).dims();
  return combine(a, a, a.dtype, [](const Dim& x, const Dim&) { return Dim(0) - x; });
}

Results absolute(const OpCall& call) {
  return {widened([](const Tensor& a) { return abs(a); }, call.tensor(0))};
}
Results sign_op(const OpCall& call) {
  return {widened([](const Tensor& a) { return sign(a); }, call.tensor(0))};
}

/// A bound is a constant or a tensor of one element. The gradient is 0 at a known bound, as in PyTorch.
Results clip(const OpCall& call) {
  Tensor x = call.tensor(0);
  const DType dtype = x.dtype();
  const auto limit = [&](const char* name, std::size_t i, const auto& combine_with, const auto& is_inside) {
    if (!call.has(name) && !call.has(i)) return;
    const Tensor at = call.has(name) ? call.graph().constant(call.real(name), dtype) : call.tensor(i).reshape({});
    const Tensor result = widened(combine_with, x, at);
    const bool is_known = call.has(name) || call.operand(i).constant();
    x = is_known && is_float(dtype) ? straight_through(result, where(is_inside(x, at), x, 0)) : result;
  };
  limit("min", 1, [](const Tensor& a, const Tensor& b) { return maximum(a, b); }, std::greater());
  limit("max", 2, [](const Tensor& a, const Tensor& b) { return minimum(a, b); }, std::less());
  return {x};
}

}  // namespace

std::span<const OpRecord> arithmetic_ops() {
  static constexpr OpRecord records[] = {
      {"Add", 7, latest, "", arithmetic<Add>, Moves::none, folded<Add>},
      {"Sub", 7, latest, "", arithmetic<Sub>, Moves::none, folded<Sub>},
      {"Mul", 7, latest, "", arithmetic<Mul>, Moves::none, folded<Mul>},
      {"Div", 7, latest, "", arithmetic<Div>, Moves::none, folded_quotient},
      {"Mod", 10, latest, "fmod", mod, Moves::none, folded_mod},
      {"Pow", 7, latest, "", power},
      {"Neg", 6, latest, "", negate, Moves::none, folded_negation},
      {"Abs", 6, latest, "", absolute},
      {"Sign", 9, latest, "", sign_op},
      {"Sum", 6, latest, "", variadic<Add>},
      {"Mean", 6, latest, "", mean_of_operands},
      {"Max", 6, latest, "", variadic<Maximum>, Moves::none, folded<Maximum>},
      {"Min", 6, latest, "", variadic<Minimum>, Moves::none, folded<Minimum>},
      {"Clip", 6, 10, "min max", clip},
      {"Clip", 11, latest, "", clip},
  };
  return records;
}

}  // namespace lathe::onnx
