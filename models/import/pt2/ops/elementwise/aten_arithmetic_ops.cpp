#include <fmt/core.h>

#include <cmath>
#include <functional>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

/// Applies an op in a dtype; bools and 8-bit integers have no arithmetic in Lathe and are computed in i32.
template <class Op>
Tensor computed(const Op& op, const OpCall& call, DType dtype) {
  const Tensor a = operand_as(call, 0, dtype), b = operand_as(call, 1, dtype);
  if (dtype == boolean) return op(a.to(i32), b.to(i32)).to(boolean);
  return widened([&](const Tensor& x, const Tensor& y) { return op(x, y); }, a, b);
}

/// Returns b * alpha.
Tensor scaled_by_alpha(const OpCall& call, const Tensor& b) {
  if (const auto* real = call.find<double>("alpha")) return *real == 1 ? b : b * *real;
  const std::int64_t alpha = call.integer("alpha", 1);
  return alpha == 1 ? b : b * alpha;
}

Results add(const OpCall& call) {
  const auto op = [&](const Tensor& a, const Tensor& b) { return a + scaled_by_alpha(call, b); };
  return {computed(op, call, promoted(call, {0, 1}))};
}
Results subtract(const OpCall& call) {
  const auto op = [&](const Tensor& a, const Tensor& b) { return a - scaled_by_alpha(call, b); };
  return {computed(op, call, promoted(call, {0, 1}))};
}
Results subtract_from(const OpCall& call) {
  const auto op = [&](const Tensor& a, const Tensor& b) { return b - scaled_by_alpha(call, a); };
  return {computed(op, call, promoted(call, {0, 1}))};
}
Results multiply(const OpCall& call) {
  const auto op = [](const Tensor& a, const Tensor& b) { return a * b; };
  return {computed(op, call, promoted(call, {0, 1}))};
}
Results maximum_op(const OpCall& call) {
  const auto op = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  return {computed(op, call, promoted(call, {0, 1}))};
}
Results minimum_op(const OpCall& call) {
  const auto op = [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
  return {computed(op, call, promoted(call, {0, 1}))};
}

/// a * conj(b) / |b|^2 for complex numbers. b is scaled first, so that its square does not overflow.
Tensor complex_quotient(const Tensor& a, const Tensor& b) {
  const Tensor parts = view_as_real(b), scale = detach(abs(parts).max(-1, true));
  const Tensor unit = parts / where(scale == 0, 1, scale), size = unit.square().sum(-1, true) * scale;
  return view_as_complex(view_as_real(a * conj(view_as_complex(unit))) / size);
}

Results divide(const OpCall& call) {
  const DType dtype = float_of(promoted(call, {0, 1}));
  if (is_complex(dtype)) return {complex_quotient(operand_as(call, 0, dtype), operand_as(call, 1, dtype))};
  return {operand_as(call, 0, dtype) / operand_as(call, 1, dtype)};
}

Results divide_rounded(const OpCall& call) {
  if (!call.has("rounding_mode")) return divide(call);
  const std::string mode = call.text("rounding_mode", "");
  if (mode != "floor" && mode != "trunc")
    call.fail(fmt::format("the argument rounding_mode is '{}'", mode), "import_attribute");
  const auto op = [&](const Tensor& a, const Tensor& b) {
    if (mode == "floor") return importing::floor_quotient(a, b);
    return is_float(a.dtype()) ? detach((a / b).trunc()) : a / b;
  };
  return {computed(op, call, promoted(call, {0, 1}))};
}

Results floor_divide(const OpCall& call) {
  return {computed(importing::floor_quotient, call, promoted(call, {0, 1}))};
}

Results remainder_op(const OpCall& call) {
  const auto op = [](const Tensor& a, const Tensor& b) {
    return is_float(a.dtype()) ? importing::float_remainder(a, b, false) : importing::floor_remainder(a, b);
  };
  return {computed(op, call, promoted(call, {0, 1}))};
}

Results fmod_op(const OpCall& call) {
  const auto op = [](const Tensor& a, const Tensor& b) {
    return is_float(a.dtype()) ? importing::float_remainder(a, b, true) : a % b;
  };
  return {computed(op, call, promoted(call, {0, 1}))};
}

/// x to the power of a number. PyTorch takes the square root for 1/2, which is NaN for -inf.
Tensor number_power(const Tensor& x, const Number& exponent) {
  return exponent == Number(0.5) ? sqrt(x) : pow(x, exponent);
}

/// Squares the base for each bit of an exponent that is known.
Tensor whole_power(Tensor base, std::int64_t exponent) {
  Tensor result = ones_like(base);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * base;
    if (exponent > 1) base = base * base;
  }
  return result;
}

/// Powers of integers wrap.
Results power(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  if (is_complex(dtype)) call.fail("powers of complex numbers are not supported");
  if (!is_float(dtype)) {
    const DType wide = dtype == i64 ? i64 : i32;
    const Tensor base = operand_as(call, 0, wide);
    const std::optional<Number> known = call.is_number(1) ? number_of(call, 1) : std::nullopt;
    if (known && known->is_i64() && known->integer() >= 0) return {whole_power(base, known->integer()).to(dtype)};
    return {importing::integer_power(base, operand_as(call, 1, wide)).to(dtype)};
  }
  if (const std::optional<Number> exponent = number_of(call, 1); exponent && call.is_number(1))
    return {number_power(operand_as(call, 0, dtype), *exponent)};
  return {pow(operand_as(call, 0, dtype), operand_as(call, 1, dtype))};
}

/// Powers in f64, whatever the operands are.
Results float_power(const OpCall& call) {
  if (is_complex(promoted(call, {0, 1}))) call.fail("powers of complex numbers are not supported");
  if (const std::optional<Number> exponent = number_of(call, 1); exponent && call.is_number(1))
    return {number_power(operand_as(call, 0, f64), *exponent)};
  return {pow(operand_as(call, 0, f64), operand_as(call, 1, f64))};
}

Results negate(const OpCall& call) {
  return {widened([](const Tensor& a) { return -a; }, call.tensor(0))};
}
Results absolute(const OpCall& call) {
  if (is_complex(call.dtype(0))) return {view_as_real(call.tensor(0)).norm(-1)};
  return {widened([](const Tensor& a) { return abs(a); }, call.tensor(0))};
}
/// The sign of NaN is 0. Bools are their own signs.
Results sign_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.dtype() == boolean) return {x};
  if (is_float(x.dtype())) return {where(isnan(x), 0, sign(x))};
  return {widened([](const Tensor& a) { return sign(a); }, x)};
}
/// x / |x| for complex numbers, and 0 for 0.
Results complex_sign(const OpCall& call) {
  if (!is_complex(call.dtype(0))) return sign_op(call);
  const Tensor parts = view_as_real(call.tensor(0)), size = norm(parts, -1, true);
  return {view_as_complex(parts / where(size == 0, 1, size))};
}
Results square_op(const OpCall& call) {
  if (call.dtype(0) == boolean) return {call.tensor(0).to(i64)};
  return {widened([](const Tensor& a) { return a * a; }, call.tensor(0))};
}

/// A number as a limit of floats has the gradient 0 at the limit; a tensor shares it, as maximum() does.
Tensor at_limit(const OpCall& call, std::size_t i, const Tensor& x, const auto& op, const auto& is_inside) {
  const Tensor limit = operand_as(call, i, x.dtype()), result = widened(op, x, limit);
  if (!call.is_number(i) || !is_float(x.dtype())) return result;
  return straight_through(result, where(is_inside(x, limit), x, 0));
}

/// Limits are numbers or tensors, each of which may be left out.
Results clamped(const OpCall& call, bool has_low, bool has_high) {
  const std::size_t high = has_low ? 2 : 1;
  const DType dtype = has_low && has_high ? promoted(call, {0, 1, 2}) : promoted(call, {0, 1});
  Tensor x = operand_as(call, 0, dtype);
  const auto largest = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  const auto smallest = [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
  if (has_low && call.has(1)) x = at_limit(call, 1, x, largest, std::greater());
  if (has_high && call.has(high)) x = at_limit(call, high, x, smallest, std::less());
  return {x};
}
Results clamp_op(const OpCall& call) { return clamped(call, true, true); }
Results clamp_min(const OpCall& call) { return clamped(call, true, false); }
Results clamp_max(const OpCall& call) { return clamped(call, false, true); }

Results add_product(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1, 2}), wide = is_byte(dtype) ? i32 : dtype;
  const Tensor product = operand_as(call, 1, wide) * operand_as(call, 2, wide);
  return {(operand_as(call, 0, wide) + product * real_argument(call, "value", 1)).to(dtype)};
}
Results add_quotient(const OpCall& call) {
  const DType dtype = float_of(promoted(call, {0, 1, 2}));
  return {operand_as(call, 0, dtype) +
          operand_as(call, 1, dtype) / operand_as(call, 2, dtype) * real_argument(call, "value", 1)};
}

/// start + weight * (end - start), computed from the end that is nearer.
Results lerp(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1, 2});
  const Tensor a = operand_as(call, 0, dtype), b = operand_as(call, 1, dtype), weight = operand_as(call, 2, dtype);
  const Tensor difference = b - a, low = a + weight * difference, high = b - difference * (1.0 - weight);
  if (const std::optional<Number> known = number_of(call, 2); known && call.is_number(2))
    return {std::abs(known->real()) < 0.5 ? low : high};
  return {where(abs(weight) < 0.5, low, high)};
}

}  // namespace

std::span<const OpRecord> aten_arithmetic_ops() {
  static constexpr OpRecord records[] = {
      aten("add.Tensor", "self other", "alpha", add),
      aten("add.Scalar", "self other", "alpha", add),
      aten("sub.Tensor", "self other", "alpha", subtract),
      aten("sub.Scalar", "self other", "alpha", subtract),
      aten("rsub.Tensor", "self other", "alpha", subtract_from),
      aten("rsub.Scalar", "self other", "alpha", subtract_from),
      aten("mul.Tensor", "self other", "", multiply),
      aten("mul.Scalar", "self other", "", multiply),
      aten("div.Tensor", "self other", "", divide),
      aten("div.Scalar", "self other", "", divide),
      aten("div.Tensor_mode", "self other", "rounding_mode", divide_rounded),
      aten("div.Scalar_mode", "self other", "rounding_mode", divide_rounded),
      aten("floor_divide", "self other", "", floor_divide),
      aten("floor_divide.Scalar", "self other", "", floor_divide),
      aten("remainder.Tensor", "self other", "", remainder_op),
      aten("remainder.Scalar", "self other", "", remainder_op),
      aten("remainder.Scalar_Tensor", "self other", "", remainder_op),
      aten("fmod.Tensor", "self other", "", fmod_op),
      aten("fmod.Scalar", "self other", "", fmod_op),
      aten("pow.Tensor_Scalar", "self exponent", "", power),
      aten("pow.Tensor_Tensor", "self exponent", "", power),
      aten("pow.Scalar", "self exponent", "", power),
      aten("float_power.Tensor_Scalar", "self exponent", "", float_power),
      aten("float_power.Tensor_Tensor", "self exponent", "", float_power),
      aten("float_power.Scalar", "self exponent", "", float_power),
      aten("maximum", "self other", "", maximum_op),
      aten("minimum", "self other", "", minimum_op),
      aten("max.other", "self other", "", maximum_op),
      aten("min.other", "self other", "", minimum_op),
      aten("neg", "self", "", negate),
      aten("abs", "self", "", absolute),
      aten("sign", "self", "", sign_op),
      aten("sgn", "self", "", complex_sign),
      aten("square", "self", "", square_op),
      aten("clamp", "self min max", "", clamp_op),
      aten("clamp.Tensor", "self min max", "", clamp_op),
      aten("clamp_min", "self min", "", clamp_min),
      aten("clamp_min.Tensor", "self min", "", clamp_min),
      aten("clamp_max", "self max", "", clamp_max),
      aten("clamp_max.Tensor", "self max", "", clamp_max),
      aten("addcmul", "self tensor1 tensor2", "value", add_product),
      aten("addcdiv", "self tensor1 tensor2", "value", add_quotient),
      aten("lerp.Scalar", "self end weight", "", lerp),
      aten("lerp.Tensor", "self end weight", "", lerp),
  };
  return records;
}

}  // namespace lathe::pt2
