#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/ops/derived_ops.h"
#include "models/import/ops/elementwise_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Element-wise functions of floats that are rarer than those of aten_function_ops.cpp.
namespace lathe::pt2 {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Two operands in the float dtype that they have in common.
struct Pair {
  Tensor a, b;
};
Pair float_pair(const OpCall& call) {
  const DType dtype = float_of(promoted(call, {0, 1}));
  return {operand_as(call, 0, dtype), operand_as(call, 1, dtype)};
}

/// Applies a function of two operands, in f64 for f32 and in f32 for smaller ones.
Results wider(const OpCall& call, const auto& function) {
  const auto [a, b] = float_pair(call);
  const DType wide = a.dtype() == f32 || a.dtype() == f64 ? f64 : f32;
  return {function(a.to(wide), b.to(wide)).to(a.dtype())};
}

/// Whether floats are negative, -0 included.
Tensor is_negative(const Tensor& x) { return (x < 0) | (reciprocal(x) == -infinity); }

/// A NaN is ignored if the other operand is a number.
Results fmax_op(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  const Tensor a = operand_as(call, 0, dtype), b = operand_as(call, 1, dtype);
  if (!is_float(dtype)) return {widened([](const Tensor& x, const Tensor& y) { return maximum(x, y); }, a, b)};
  return {where(isnan(a), b, where(isnan(b), a, maximum(a, b)))};
}
Results fmin_op(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  const Tensor a = operand_as(call, 0, dtype), b = operand_as(call, 1, dtype);
  if (!is_float(dtype)) return {widened([](const Tensor& x, const Tensor& y) { return minimum(x, y); }, a, b)};
  return {where(isnan(a), b, where(isnan(b), a, minimum(a, b)))};
}

/// The root of the sum of squares, without overflow. It is infinite if one operand is, also if the other is NaN.
Results hypot_op(const OpCall& call) {
  return wider(call, [](const Tensor& a, const Tensor& b) {
    const Tensor large = maximum(abs(a), abs(b)), is_infinite = (abs(a) == infinity) | (abs(b) == infinity);
    const Tensor scale = where(is_infinite | (large == 0), 1, large), x = a / scale, y = b / scale;
    return where(is_infinite, infinity, sqrt(x * x + y * y) * scale);
  });
}

/// log(e^a + e^b) / log(base) for powers of a base, whose logarithm is given.
Tensor log_add_exp(const Tensor& a, const Tensor& b, double log_base) {
  const Tensor is_same_infinity = (a == b) & (abs(a) == infinity);
  const Tensor distance = abs(where(is_same_infinity, 0, a - b)) * -log_base;
  return maximum(a, b) + log1p(exp(distance)) / log_base;
}
Results log_add_exp_op(const OpCall& call) {
  return wider(call, [](const Tensor& a, const Tensor& b) { return log_add_exp(a, b, 1); });
}
Results log_add_exp2(const OpCall& call) {
  return wider(call, [](const Tensor& a, const Tensor& b) { return log_add_exp(a, b, std::numbers::ln2); });
}

Results xlogy_op(const OpCall& call) {
  const auto [a, b] = float_pair(call);
  return {importing::xlogy(a, b)};
}

/// The angle of the point (b, a): the arc tangent of the smaller over the larger side, moved to its part of the
/// plane. The sides have gradients at 0 and where they are equal, and none at the point (0, 0).
Tensor arc_tangent(const Tensor& a, const Tensor& b) {
  const auto side_of = [](const Tensor& x) { return where(is_negative(x), x.graph().constant(-1, x.dtype()), 1); };
  const Tensor height = a * side_of(a), width = b * side_of(b), is_steep = height > width;
  const Tensor small = where(is_steep, width, height), large = where(is_steep, height, width);
  const Tensor is_diagonal = (small == infinity) & (large == infinity);
  const Tensor is_origin = (height == 0) & (width == 0);
  const Tensor ratio = small / where(is_diagonal | is_origin, 1, large);
  const Tensor angle = importing::atan(where(is_diagonal, 1, where(is_origin, 0, ratio)));
  const Tensor first = where(is_steep, std::numbers::pi / 2 - angle, angle);
  const Tensor half = where(is_negative(b), std::numbers::pi - first, first);
  return half * side_of(a);
}
Results atan2_op(const OpCall& call) { return wider(call, arc_tangent); }

/// The angle of complex numbers; of real ones, pi below 0.
Results angle_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (is_complex(x.dtype())) {
    const Tensor parts = view_as_real(x);
    return {arc_tangent(parts.select(-1, 1).to(f64), parts.select(-1, 0).to(f64)).to(parts.dtype())};
  }
  const Tensor real = float_operand(call);
  return {where(real < 0, std::numbers::pi, where(isnan(real), real, 0))};
}

Results copy_sign(const OpCall& call) {
  const auto [a, b] = float_pair(call);
  return {where(is_negative(b), -abs(a), abs(a))};
}

/// 0 below 0, 1 above, and operand 1 at 0.
Results heaviside_op(const OpCall& call) {
  const Tensor x = call.tensor(0), values = call.tensor(1);
  if (x.dtype() != values.dtype()) call.fail("the operands have different dtypes", "import_dtype");
  const bool is_small = x.dtype() == boolean || is_byte(x.dtype());
  const Tensor a = is_small ? x.to(i32) : x, b = is_small ? values.to(i32) : values;
  return {where(a == 0, b, (a > 0).to(a.dtype())).to(x.dtype())};
}

/// a * 2^b
Results ldexp_op(const OpCall& call) {
  const DType dtype = float_of(promoted(call, {0, 1}));
  return {operand_as(call, 0, dtype) * pow(2, call.tensor(1).to(float_of(call.dtype(1)))).to(dtype)};
}

/// Without a limit, numbers outside of 0 .. 1 give NaN.
Results logit_op(const OpCall& call) {
  Tensor x = float_operand(call);
  const double eps = real_argument(call, "eps", -1);
  if (eps >= 0) x = clamp(x, eps, 1 - eps);
  return {log(x / (1.0 - x))};
}

/// sin(pi x) / (pi x)
Tensor sinc(const Tensor& x) {
  const Tensor is_zero = x == 0, angle = where(is_zero, 1, x * std::numbers::pi);
  return where(is_zero, 1, sin(angle) / angle);
}
Tensor radians(const Tensor& x) { return x * (std::numbers::pi / 180); }
Tensor degrees(const Tensor& x) { return x * (180 / std::numbers::pi); }
Tensor fraction(const Tensor& x) { return x - x.trunc(); }

template <Tensor (*function)(const Tensor&)>
Results of_floats(const OpCall& call) {
  return {function(float_operand(call))};
}

Results sign_bit(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (is_float(x.dtype())) return {is_negative(x)};
  return {(x.dtype() == boolean || is_byte(x.dtype()) ? x.to(i32) : x) < 0};
}

Results is_real(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (is_complex(x.dtype())) return {view_as_real(x).select(-1, 1) == 0};
  return {x.graph().ones(x.shape(), boolean)};
}

Results is_equal_to(const OpCall& call, double number) {
  const Tensor x = call.tensor(0);
  return {is_float(x.dtype()) ? x == number : x.graph().zeros(x.shape(), boolean)};
}
Results is_positive_infinity(const OpCall& call) { return is_equal_to(call, infinity); }
Results is_negative_infinity(const OpCall& call) { return is_equal_to(call, -infinity); }

/// |a - b| <= atol + rtol |b|, for finite numbers; equal infinities are close.
Results is_close(const OpCall& call) {
  const double relative = real_argument(call, "rtol", 1e-5), absolute = real_argument(call, "atol", 1e-8);
  const bool equal_nan = call.flag("equal_nan", false);
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (a.dtype() != b.dtype()) call.fail("the operands have different dtypes", "import_dtype");
  if (is_complex(a.dtype())) call.fail("complex numbers are not supported");
  const bool has_floats = is_float(a.dtype());
  const Tensor x = has_floats ? a : a.to(f64), y = has_floats ? b : b.to(f64);
  Tensor result = x == y;
  if (equal_nan && has_floats) result = result | (isnan(x) & isnan(y));
  if (relative == 0 && absolute == 0) return {result};
  const Tensor distance = abs(x - y);
  return {result | (isfinite(distance) & (distance <= abs(y * relative) + absolute))};
}

/// Compares each element with all test elements.
Results is_in(const OpCall& call) {
  call.ignore({"assume_unique"});
  const DType common = promoted(call, {0, 1}), dtype = common == boolean ? i32 : common;
  const Tensor x = operand_as(call, 0, dtype), tests = operand_as(call, 1, dtype);
  const Tensor found = (x.unsqueeze(-1) == as_vector(tests)).any(-1);
  return {call.flag("invert", false) ? ~found : found};
}

template <Tensor (*shift)(const Tensor&, const Tensor&, Where)>
Results shifted(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  if (is_float(dtype) || dtype == boolean) call.fail(fmt::format("{} has no bits to shift", name(dtype)));
  const auto op = [](const Tensor& a, const Tensor& b) { return shift(a, b, Where::current()); };
  return {widened(op, operand_as(call, 0, dtype), operand_as(call, 1, dtype))};
}

}  // namespace

std::span<const OpRecord> aten_float_ops() {
  static constexpr OpRecord records[] = {
      aten("fmax", "self other", "", fmax_op),
      aten("fmin", "self other", "", fmin_op),
      aten("hypot", "self other", "", hypot_op),
      aten("logaddexp", "self other", "", log_add_exp_op),
      aten("logaddexp2", "self other", "", log_add_exp2),
      aten("xlogy.Tensor", "self other", "", xlogy_op),
      aten("xlogy.Scalar_Self", "self other", "", xlogy_op),
      aten("xlogy.Scalar_Other", "self other", "", xlogy_op),
      aten("atan2", "self other", "", atan2_op),
      aten("angle", "self", "", angle_op),
      aten("copysign.Tensor", "self other", "", copy_sign),
      aten("copysign.Scalar", "self other", "", copy_sign),
      aten("heaviside", "self values", "", heaviside_op),
      aten("ldexp.Tensor", "self other", "", ldexp_op),
      aten("erfc", "self", "", of_floats<importing::erfc>),
      aten("logit", "self", "eps", logit_op),
      aten("sinc", "self", "", of_floats<sinc>),
      aten("deg2rad", "self", "", of_floats<radians>),
      aten("rad2deg", "self", "", of_floats<degrees>),
      aten("frac", "self", "", of_floats<fraction>),
      aten("signbit", "self", "", sign_bit),
      aten("isreal", "self", "", is_real),
      aten("isposinf", "self", "", is_positive_infinity),
      aten("isneginf", "self", "", is_negative_infinity),
      aten("isclose", "self other", "rtol atol equal_nan", is_close),
      aten("isin.Tensor_Tensor", "elements test_elements", "assume_unique invert", is_in),
      aten("isin.Tensor_Scalar", "elements test_element", "assume_unique invert", is_in),
      aten("isin.Scalar_Tensor", "element test_elements", "assume_unique invert", is_in),
      aten("bitwise_left_shift.Tensor", "self other", "", shifted<shift_left>),
      aten("bitwise_left_shift.Tensor_Scalar", "self other", "", shifted<shift_left>),
      aten("bitwise_left_shift.Scalar_Tensor", "self other", "", shifted<shift_left>),
      aten("bitwise_right_shift.Tensor", "self other", "", shifted<shift_right>),
      aten("bitwise_right_shift.Tensor_Scalar", "self other", "", shifted<shift_right>),
      aten("bitwise_right_shift.Scalar_Tensor", "self other", "", shifted<shift_right>),
  };
  return records;
}

}  // namespace lathe::pt2
