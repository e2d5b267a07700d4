#include "frontend/tensor.h"

#include "frontend/built.h"
#include "ir/ops/functional/functional.h"

namespace lathe {

using detail::built;

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
Tensor operator&(const Operand& a, const Operand& b) {
  return built("logical_and", a.at, ir::logical_and, a.tensor, b.tensor);
}
Tensor operator|(const Operand& a, const Operand& b) {
  return built("logical_or", a.at, ir::logical_or, a.tensor, b.tensor);
}
Tensor operator~(const Operand& a) { return built("logical_not", a.at, ir::logical_not, a.tensor); }

}  // namespace lathe
