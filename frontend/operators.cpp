#include "frontend/tensor.h"
#include "ir/ops/functional.h"

namespace lathe {

namespace {

template <class Make>
Tensor built(const Operand& a, Make make) {
  const detail::Line line(a.tensor, a.at);
  return Tensor(make());
}

const ir::Value& v(const Operand& a) { return a.tensor.value(); }

}  // namespace

Tensor operator+(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::add(v(a), v(b)); });
}
Tensor operator+(const Operand& a, Number b) {
  return built(a, [&] { return ir::add(v(a), b.value); });
}
Tensor operator+(Number a, const Operand& b) {
  return built(b, [&] { return ir::add(v(b), a.value); });
}
Tensor operator-(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::sub(v(a), v(b)); });
}
Tensor operator-(const Operand& a, Number b) {
  return built(a, [&] { return ir::sub(v(a), b.value); });
}
Tensor operator-(Number a, const Operand& b) {
  return built(b, [&] { return ir::sub(a.value, v(b)); });
}
Tensor operator*(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::mul(v(a), v(b)); });
}
Tensor operator*(const Operand& a, Number b) {
  return built(a, [&] { return ir::mul(v(a), b.value); });
}
Tensor operator*(Number a, const Operand& b) {
  return built(b, [&] { return ir::mul(v(b), a.value); });
}
Tensor operator/(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::div(v(a), v(b)); });
}
Tensor operator/(const Operand& a, Number b) {
  return built(a, [&] { return ir::div(v(a), b.value); });
}
Tensor operator/(Number a, const Operand& b) {
  return built(b, [&] { return ir::div(a.value, v(b)); });
}
Tensor operator%(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::rem(v(a), v(b)); });
}
Tensor operator-(const Operand& a) {
  return built(a, [&] { return ir::neg(v(a)); });
}
Tensor operator==(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::eq(v(a), v(b)); });
}
Tensor operator==(const Operand& a, Number b) {
  return built(a, [&] { return ir::eq(v(a), b.value); });
}
Tensor operator!=(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::ne(v(a), v(b)); });
}
Tensor operator!=(const Operand& a, Number b) {
  return built(a, [&] { return ir::ne(v(a), b.value); });
}
Tensor operator<(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::lt(v(a), v(b)); });
}
Tensor operator<(const Operand& a, Number b) {
  return built(a, [&] { return ir::lt(v(a), b.value); });
}
Tensor operator<=(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::le(v(a), v(b)); });
}
Tensor operator<=(const Operand& a, Number b) {
  return built(a, [&] { return ir::le(v(a), b.value); });
}
Tensor operator>(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::gt(v(a), v(b)); });
}
Tensor operator>(const Operand& a, Number b) {
  return built(a, [&] { return ir::gt(v(a), b.value); });
}
Tensor operator>=(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::ge(v(a), v(b)); });
}
Tensor operator>=(const Operand& a, Number b) {
  return built(a, [&] { return ir::ge(v(a), b.value); });
}
Tensor operator&(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::logical_and(v(a), v(b)); });
}
Tensor operator|(const Operand& a, const Operand& b) {
  return built(a, [&] { return ir::logical_or(v(a), v(b)); });
}
Tensor operator~(const Operand& a) {
  return built(a, [&] { return ir::logical_not(v(a)); });
}

}  // namespace lathe
