#include "ir/ops/functional_helpers.h"
#include "ir/ops/list.h"

namespace lathe::ir {

namespace {
/// A number as an operand beside `a`.
Value number(const Value& a, double value) { return constant(a.builder(), value, a.dtype()); }
Value binary(const Op& op, const Value& a, const Value& b) { return a.builder().add(op, {a, b}); }
}  // namespace

Value add(const Value& a, const Value& b) { return binary(ops::add, a, b); }
Value sub(const Value& a, const Value& b) { return binary(ops::sub, a, b); }
Value mul(const Value& a, const Value& b) { return binary(ops::mul, a, b); }
Value div(const Value& a, const Value& b) { return binary(ops::div, a, b); }
Value rem(const Value& a, const Value& b) { return binary(ops::rem, a, b); }
Value minimum(const Value& a, const Value& b) { return binary(ops::minimum, a, b); }
Value maximum(const Value& a, const Value& b) { return binary(ops::maximum, a, b); }
Value pow(const Value& a, const Value& b) { return binary(ops::pow, a, b); }

Value add(const Value& a, double b) { return add(a, number(a, b)); }
Value sub(const Value& a, double b) { return sub(a, number(a, b)); }
Value sub(double a, const Value& b) { return sub(number(b, a), b); }
Value mul(const Value& a, double b) { return mul(a, number(a, b)); }
Value div(const Value& a, double b) { return div(a, number(a, b)); }
Value div(double a, const Value& b) { return div(number(b, a), b); }
Value pow(const Value& a, double b) { return pow(a, number(a, b)); }
Value maximum(const Value& a, double b) { return maximum(a, number(a, b)); }
Value minimum(const Value& a, double b) { return minimum(a, number(a, b)); }

Value neg(const Value& a) { return unary(ops::neg, a); }
Value abs(const Value& a) { return unary(ops::abs, a); }
Value sign(const Value& a) { return unary(ops::sign, a); }
Value floor(const Value& a) { return unary(ops::floor, a); }
Value round(const Value& a) { return unary(ops::round, a); }
Value exp(const Value& a) { return unary(ops::exp, a); }
Value log(const Value& a) { return unary(ops::log, a); }
Value sqrt(const Value& a) { return unary(ops::sqrt, a); }
Value rsqrt(const Value& a) { return unary(ops::rsqrt, a); }
Value sin(const Value& a) { return unary(ops::sin, a); }
Value cos(const Value& a) { return unary(ops::cos, a); }
Value tanh(const Value& a) { return unary(ops::tanh, a); }
Value erf(const Value& a) { return unary(ops::erf, a); }

Value eq(const Value& a, const Value& b) { return binary(ops::eq, a, b); }
Value ne(const Value& a, const Value& b) { return binary(ops::ne, a, b); }
Value lt(const Value& a, const Value& b) { return binary(ops::lt, a, b); }
Value le(const Value& a, const Value& b) { return binary(ops::le, a, b); }
Value gt(const Value& a, const Value& b) { return binary(ops::lt, b, a); }
Value ge(const Value& a, const Value& b) { return binary(ops::le, b, a); }
Value eq(const Value& a, double b) { return eq(a, number(a, b)); }
Value ne(const Value& a, double b) { return ne(a, number(a, b)); }
Value lt(const Value& a, double b) { return lt(a, number(a, b)); }
Value le(const Value& a, double b) { return le(a, number(a, b)); }
Value gt(const Value& a, double b) { return gt(a, number(a, b)); }
Value ge(const Value& a, double b) { return ge(a, number(a, b)); }

Value logical_and(const Value& a, const Value& b) { return binary(ops::logical_and, a, b); }
Value logical_or(const Value& a, const Value& b) { return binary(ops::logical_or, a, b); }
Value logical_not(const Value& a) { return unary(ops::logical_not, a); }

Value where(const Value& condition, const Value& a, const Value& b) {
  return condition.builder().add(ops::where, {condition, a, b});
}
Value where(const Value& condition, const Value& a, double b) { return where(condition, a, number(a, b)); }
Value where(const Value& condition, double a, const Value& b) { return where(condition, number(b, a), b); }

Value cast(const Value& a, DType dtype) {
  return a.dtype() == dtype ? a : a.builder().add(ops::cast, {a}, {{"dtype", dtype}});
}

}  // namespace lathe::ir
