#include <cmath>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/constants.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe::ir::canonical {

std::optional<Number> number(const Value& value) {
  if (is_complex(value.dtype())) return std::nullopt;
  return uniform_value(value.builder().graph(), value.id());
}

namespace {

bool is_number(const Value& value, double wanted) {
  const auto found = number(value);
  return found && *found == wanted && std::signbit(found->real()) == std::signbit(wanted);
}

/// Returns operand i if it alone has the result's shape.
std::optional<Value> keep(const Context& c, int i) {
  return c.full_shape(i) ? std::optional(c.operand(i)) : std::nullopt;
}

/// x + 0 turns -0 into 0, but x + -0 is x; for integers both are x.
std::optional<Value> add_zero(const Context& c) {
  if (c.node.op != &ops::add) return std::nullopt;
  const double zero = is_integer(c.node.type.dtype) ? 0.0 : -0.0;
  for (const int i : {0, 1})
    if (is_number(c.operand(i), zero)) return keep(c, 1 - i);
  return std::nullopt;
}

std::optional<Value> sub_zero(const Context& c) {
  if (c.node.op != &ops::sub || !is_number(c.operand(1), 0.0)) return std::nullopt;
  return keep(c, 0);
}

std::optional<Value> times_one(const Context& c) {
  if (c.node.op == &ops::div && is_number(c.operand(1), 1)) return keep(c, 0);
  if (c.node.op != &ops::mul) return std::nullopt;
  for (const int i : {0, 1}) {
    if (is_number(c.operand(i), 1)) return keep(c, 1 - i);
    if (is_number(c.operand(i), -1) && c.full_shape(1 - i)) return neg(c.operand(1 - i));
  }
  return std::nullopt;
}

/// Returns the operand of a neg.
std::optional<Value> negated(const Value& value) {
  return is(value, ops::neg) ? std::optional(operand_of(value)) : std::nullopt;
}

std::optional<Value> move_neg(const Context& c) {
  const Op* op = c.node.op;
  const auto first = c.operands.empty() ? std::nullopt : negated(c.operand(0));
  if (op == &ops::neg) return first;
  if (op == &ops::abs && first) return abs(*first);
  if (c.operands.size() != 2) return std::nullopt;
  const auto second = negated(c.operand(1));
  if (op == &ops::mul && first && second) return mul(*first, *second);
  // Not for integers, where the negative of the smallest one is itself.
  if (op == &ops::div && first && second && is_float(first->dtype())) return div(*first, *second);
  if (op == &ops::add && second) return sub(c.operand(0), *second);
  if (op == &ops::add && first) return sub(c.operand(1), *first);
  if (op == &ops::sub && second) return add(c.operand(0), *second);
  return std::nullopt;
}

/// Only the integer exponents for which the product rounds no worse than pow.
std::optional<Value> whole_power(const Context& c) {
  if (c.node.op != &ops::pow || !c.full_shape(0)) return std::nullopt;
  const auto exponent = number(c.operand(1));
  const Value& x = c.operand(0);
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return mul(x, x);
  if (exponent == 3.0) return mul(mul(x, x), x);
  if (exponent == -1.0) return div(1.0, x);
  return std::nullopt;
}

/// Whether every value of `from` is a value of `to`.
bool exact_cast(DType from, DType to) {
  if (from == to) return true;
  if (is_complex(from) || is_complex(to)) return from == c64 && to == c128;
  switch (from) {
    case DType::boolean: return true;
    case DType::i8:
    case DType::u8: return is_integer(to) || is_float(to);
    case DType::i32: return to == i64 || to == f64;
    case DType::f32: return to == f64;
    case DType::bf16:
    case DType::f16: return to == f32 || to == f64;
    case DType::f64:
    case DType::i64:
    case DType::c64:
    case DType::c128: return false;
  }
  return false;
}

std::optional<Value> join_casts(const Context& c) {
  if (c.node.op != &ops::cast) return std::nullopt;
  const Value& a = c.operand(0);
  if (a.dtype() == c.node.type.dtype) return a;
  if (!is(a, ops::cast)) return std::nullopt;
  const Value base = operand_of(a);
  if (!exact_cast(base.dtype(), a.dtype())) return std::nullopt;
  return cast(base, c.node.type.dtype);
}

std::optional<Value> choose_either(const Context& c) {
  if (c.node.op != &ops::where) return std::nullopt;
  const Value &condition = c.operand(0), &a = c.operand(1), &b = c.operand(2);
  if (a.id() == b.id()) return keep(c, 1);
  if (const auto known = number(condition)) return keep(c, *known != 0 ? 1 : 2);
  if (is(condition, ops::logical_not)) return where(operand_of(condition), b, a);
  return std::nullopt;
}

std::optional<Value> logic(const Context& c) {
  const Op* op = c.node.op;
  if (op == &ops::logical_not) {
    const Value& a = c.operand(0);
    if (is(a, ops::logical_not)) return operand_of(a);
    if (is(a, ops::eq)) return ne(operand_of(a, 0), operand_of(a, 1));
    if (is(a, ops::ne)) return eq(operand_of(a, 0), operand_of(a, 1));
    return std::nullopt;
  }
  if (op != &ops::logical_and && op != &ops::logical_or) return std::nullopt;
  const double neutral = op == &ops::logical_and ? 1 : 0;
  for (const int i : {0, 1})
    if (is_number(c.operand(i), neutral)) return keep(c, 1 - i);
  return std::nullopt;
}

std::optional<Value> same_twice(const Context& c) {
  const Op* op = c.node.op;
  const bool idempotent =
      op == &ops::minimum || op == &ops::maximum || op == &ops::logical_and || op == &ops::logical_or;
  return idempotent && c.operand(0).id() == c.operand(1).id() ? keep(c, 0) : std::nullopt;
}

std::optional<Value> reduce_nothing(const Context& c) {
  if (!c.node.op->as<Reduce>() || !c.full_shape(0)) return std::nullopt;
  const auto& dims = c.node.attrs.get<std::vector<std::int64_t>>("dims");
  for (const std::int64_t dim : dims)
    if (!c.shape()[static_cast<int>(dim < 0 ? dim + c.operand(0).rank() : dim)].is(1)) return std::nullopt;
  return c.operand(0);
}

constexpr Rule all_algebra_rules[] = {
    {"add_zero", "x + -0.0 -> x, and x + 0 -> x of integers; not x + 0.0, which turns -0.0 into 0.0", add_zero},
    {"sub_zero", "x - 0.0 -> x", sub_zero},
    {"times_one", "x * 1, x / 1 -> x; x * -1 -> -x", times_one},
    {"move_neg",
     "-(-x) -> x; |-x| -> |x|; -x * -y -> x * y; -x / -y -> x / y of floats; x + -y -> x - y; x - -y -> x + y",
     move_neg},
    {"whole_power", "pow(x, 1), pow(x, 2), pow(x, 3), pow(x, -1) -> x, x*x, x*x*x, 1/x", whole_power},
    {"join_casts", "cast(cast(x)) -> cast(x), where the first keeps every value; cast to x's own dtype -> x",
     join_casts},
    {"choose_either", "where(c, x, x), where(true, x, y) -> x; where(not c, x, y) -> where(c, y, x)", choose_either},
    {"logic", "not not x -> x; not (x == y) -> x != y, and back; x and true, x or false -> x", logic},
    {"same_twice", "min(x, x), max(x, x), x and x, x or x -> x", same_twice},
    {"reduce_nothing", "sum, prod, max, min over dims of size 1, kept -> x (the sign of a zero aside)",
     reduce_nothing},
};

}  // namespace

std::span<const Rule> algebra_rules() { return all_algebra_rules; }

}  // namespace lathe::ir::canonical
