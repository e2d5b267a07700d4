#include "frontend/tensor.h"

#include "frontend/built.h"
#include "ir/ops/functional/functional_composites.h"

namespace lathe {

using detail::BinaryOp;
using detail::built;
using detail::UnaryOp;

Tensor operator+(const Operand& a, const Operand& b) { return built("add", a.at, ir::add, a.tensor, b.tensor); }
Tensor operator+(const Operand& a, const Number& b) {
  return built("add", a.at, [&](auto& x) { return ir::add(x, b); }, a.tensor);
}
Tensor operator+(const Number& a, const Operand& b) {
  return built("add", b.at, [&](auto& x) { return ir::add(x, a); }, b.tensor);
}
Tensor operator-(const Operand& a, const Operand& b) { return built("sub", a.at, ir::sub, a.tensor, b.tensor); }
Tensor operator-(const Operand& a, const Number& b) {
  return built("sub", a.at, [&](auto& x) { return ir::sub(x, b); }, a.tensor);
}
Tensor operator-(const Number& a, const Operand& b) {
  return built("sub", b.at, [&](auto& x) { return ir::sub(a, x); }, b.tensor);
}
Tensor operator*(const Operand& a, const Operand& b) { return built("mul", a.at, ir::mul, a.tensor, b.tensor); }
Tensor operator*(const Operand& a, const Number& b) {
  return built("mul", a.at, [&](auto& x) { return ir::mul(x, b); }, a.tensor);
}
Tensor operator*(const Number& a, const Operand& b) {
  return built("mul", b.at, [&](auto& x) { return ir::mul(x, a); }, b.tensor);
}
Tensor operator/(const Operand& a, const Operand& b) { return built("div", a.at, ir::div, a.tensor, b.tensor); }
Tensor operator/(const Operand& a, const Number& b) {
  return built("div", a.at, [&](auto& x) { return ir::div(x, b); }, a.tensor);
}
Tensor operator/(const Number& a, const Operand& b) {
  return built("div", b.at, [&](auto& x) { return ir::div(a, x); }, b.tensor);
}
Tensor operator%(const Operand& a, const Operand& b) { return built("rem", a.at, ir::rem, a.tensor, b.tensor); }
Tensor operator-(const Operand& a) { return built("neg", a.at, ir::neg, a.tensor); }
Tensor operator==(const Operand& a, const Operand& b) { return built("eq", a.at, ir::eq, a.tensor, b.tensor); }
Tensor operator==(const Operand& a, const Number& b) {
  return built("eq", a.at, [&](auto& x) { return ir::eq(x, b); }, a.tensor);
}
Tensor operator!=(const Operand& a, const Operand& b) { return built("ne", a.at, ir::ne, a.tensor, b.tensor); }
Tensor operator!=(const Operand& a, const Number& b) {
  return built("ne", a.at, [&](auto& x) { return ir::ne(x, b); }, a.tensor);
}
Tensor operator<(const Operand& a, const Operand& b) { return built("lt", a.at, ir::lt, a.tensor, b.tensor); }
Tensor operator<(const Operand& a, const Number& b) {
  return built("lt", a.at, [&](auto& x) { return ir::lt(x, b); }, a.tensor);
}
Tensor operator<=(const Operand& a, const Operand& b) { return built("le", a.at, ir::le, a.tensor, b.tensor); }
Tensor operator<=(const Operand& a, const Number& b) {
  return built("le", a.at, [&](auto& x) { return ir::le(x, b); }, a.tensor);
}
Tensor operator>(const Operand& a, const Operand& b) { return built("gt", a.at, ir::gt, a.tensor, b.tensor); }
Tensor operator>(const Operand& a, const Number& b) {
  return built("gt", a.at, [&](auto& x) { return ir::gt(x, b); }, a.tensor);
}
Tensor operator>=(const Operand& a, const Operand& b) { return built("ge", a.at, ir::ge, a.tensor, b.tensor); }
Tensor operator>=(const Operand& a, const Number& b) {
  return built("ge", a.at, [&](auto& x) { return ir::ge(x, b); }, a.tensor);
}
Tensor operator==(const Number& a, const Operand& b) { return b == a; }
Tensor operator!=(const Number& a, const Operand& b) { return b != a; }
Tensor operator<(const Number& a, const Operand& b) { return b > a; }
Tensor operator<=(const Number& a, const Operand& b) { return b >= a; }
Tensor operator>(const Number& a, const Operand& b) { return b < a; }
Tensor operator>=(const Number& a, const Operand& b) { return b <= a; }
Tensor& operator+=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) + b; }
Tensor& operator-=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) - b; }
Tensor& operator*=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) * b; }
Tensor& operator/=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) / b; }
Tensor& operator+=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) + b.number; }
Tensor& operator-=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) - b.number; }
Tensor& operator*=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) * b.number; }
Tensor& operator/=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) / b.number; }

namespace {

/// Returns the bitwise op of integers or the logical op of bools; the latter rejects other dtypes.
BinaryOp of_bits(const Tensor& a, BinaryOp bitwise, BinaryOp logical) {
  const bool integers = !a.is_empty() && (a.dtype() == i64 || a.dtype() == i32);
  return integers ? bitwise : logical;
}
/// Whether bools differ.
ir::Value logical_xor(const ir::Value& a, const ir::Value& b) {
  return ir::logical_and(ir::logical_or(a, b), ir::logical_not(ir::logical_and(a, b)));
}
BinaryOp both(const Tensor& a) { return of_bits(a, ir::bitwise_and, ir::logical_and); }
BinaryOp either(const Tensor& a) { return of_bits(a, ir::bitwise_or, ir::logical_or); }
BinaryOp one(const Tensor& a) { return of_bits(a, ir::bitwise_xor, logical_xor); }

/// Returns op(a, number), with the number in the dtype of `a`.
Tensor with_number(std::string_view name, const Operand& a, const Number& b, BinaryOp op) {
  return built(name, a.at, [&](auto& x) { return op(x, ir::number_like(x, b)); }, a.tensor);
}

}  // namespace

Tensor operator%(const Operand& a, const Number& b) { return with_number("rem", a, b, ir::rem); }
Tensor operator&(const Operand& a, const Operand& b) {
  return built("and", a.at, both(a.tensor), a.tensor, b.tensor);
}
Tensor operator&(const Operand& a, const Number& b) { return with_number("and", a, b, both(a.tensor)); }
Tensor operator|(const Operand& a, const Operand& b) {
  return built("or", a.at, either(a.tensor), a.tensor, b.tensor);
}
Tensor operator|(const Operand& a, const Number& b) { return with_number("or", a, b, either(a.tensor)); }
Tensor operator^(const Operand& a, const Operand& b) { return built("xor", a.at, one(a.tensor), a.tensor, b.tensor); }
Tensor operator^(const Operand& a, const Number& b) { return with_number("xor", a, b, one(a.tensor)); }
Tensor operator~(const Operand& a) {
  const bool integers = !a.tensor.is_empty() && (a.tensor.dtype() == i64 || a.tensor.dtype() == i32);
  return built("not", a.at, integers ? UnaryOp(ir::bitwise_not) : UnaryOp(ir::logical_not), a.tensor);
}
Tensor operator<<(const Operand& a, const Operand& b) {
  return built("shift_left", a.at, ir::shift_left, a.tensor, b.tensor);
}
Tensor operator<<(const Operand& a, const Number& b) { return with_number("shift_left", a, b, ir::shift_left); }
Tensor operator>>(const Operand& a, const Operand& b) {
  return built("shift_right", a.at, ir::shift_right, a.tensor, b.tensor);
}
Tensor operator>>(const Operand& a, const Number& b) { return with_number("shift_right", a, b, ir::shift_right); }
Tensor& operator&=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) & b; }
Tensor& operator|=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) | b; }
Tensor& operator^=(Tensor& a, const Operand& b) { return a = Operand(a, b.at) ^ b; }
Tensor& operator&=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) & b.number; }
Tensor& operator|=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) | b.number; }
Tensor& operator^=(Tensor& a, const NumberOperand& b) { return a = Operand(a, b.at) ^ b.number; }

}  // namespace lathe
