#include "ir/support/numbers/scalar_op.h"

#include <algorithm>
#include <array>

#include "ir/support/error.h"

namespace lathe {

namespace {

using enum ScalarOperands;

constexpr int count = static_cast<int>(ScalarOp::cast) + 1;

constexpr std::array<ScalarOpTraits, count> table = {{
    // clang-format off
    {.op = ScalarOp::add, .name = "add", .arity = 2, .operands = numbers, .rounds = true, .commutes = true},
    {.op = ScalarOp::sub, .name = "sub", .arity = 2, .operands = numbers, .rounds = true},
    {.op = ScalarOp::mul, .name = "mul", .arity = 2, .operands = numbers, .rounds = true, .commutes = true},
    {.op = ScalarOp::div, .name = "div", .arity = 2, .operands = numbers, .cost = 4, .rounds = true},
    {.op = ScalarOp::rem, .name = "rem", .arity = 2, .operands = integers, .cost = 4},
    {.op = ScalarOp::min, .name = "min", .arity = 2, .operands = numbers, .commutes = true},
    {.op = ScalarOp::max, .name = "max", .arity = 2, .operands = numbers, .commutes = true},
    {.op = ScalarOp::pow, .name = "pow", .arity = 2, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::neg, .name = "neg", .arity = 1, .operands = numbers},
    {.op = ScalarOp::abs, .name = "abs", .arity = 1, .operands = numbers},
    {.op = ScalarOp::sign, .name = "sign", .arity = 1, .operands = numbers},
    {.op = ScalarOp::floor, .name = "floor", .arity = 1, .operands = floats},
    {.op = ScalarOp::round, .name = "round", .arity = 1, .operands = floats},
    {.op = ScalarOp::exp, .name = "exp", .arity = 1, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::log, .name = "log", .arity = 1, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::sqrt, .name = "sqrt", .arity = 1, .operands = floats, .cost = 4, .rounds = true},
    {.op = ScalarOp::rsqrt, .name = "rsqrt", .arity = 1, .operands = floats, .cost = 4, .rounds = true},
    {.op = ScalarOp::sin, .name = "sin", .arity = 1, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::cos, .name = "cos", .arity = 1, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::tanh, .name = "tanh", .arity = 1, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::erf, .name = "erf", .arity = 1, .operands = floats, .cost = 10, .rounds = true, .transcendental = true},
    {.op = ScalarOp::eq, .name = "eq", .arity = 2, .operands = numbers_or_bools, .commutes = true, .compares = true},
    {.op = ScalarOp::ne, .name = "ne", .arity = 2, .operands = numbers_or_bools, .commutes = true, .compares = true},
    {.op = ScalarOp::lt, .name = "lt", .arity = 2, .operands = numbers, .compares = true},
    {.op = ScalarOp::le, .name = "le", .arity = 2, .operands = numbers, .compares = true},
    {.op = ScalarOp::logical_and, .name = "logical_and", .arity = 2, .operands = bools, .commutes = true},
    {.op = ScalarOp::logical_or, .name = "logical_or", .arity = 2, .operands = bools, .commutes = true},
    {.op = ScalarOp::logical_not, .name = "logical_not", .arity = 1, .operands = bools},
    {.op = ScalarOp::bit_and, .name = "bit_and", .arity = 2, .operands = integers, .commutes = true},
    {.op = ScalarOp::bit_or, .name = "bit_or", .arity = 2, .operands = integers, .commutes = true},
    {.op = ScalarOp::bit_xor, .name = "bit_xor", .arity = 2, .operands = integers, .commutes = true},
    {.op = ScalarOp::shift_left, .name = "shift_left", .arity = 2, .operands = integers},
    {.op = ScalarOp::shift_right, .name = "shift_right", .arity = 2, .operands = integers},
    {.op = ScalarOp::select, .name = "select", .arity = 3, .operands = any},
    {.op = ScalarOp::cast, .name = "cast", .arity = 1, .operands = any},
}};  // clang-format on

static_assert(std::ranges::all_of(table,
                                  [](const ScalarOpTraits& row) {
                                    return &row == &table[static_cast<std::size_t>(row.op)] && row.arity > 0;
                                  }),
              "a row for each scalar op, in their order");

}  // namespace

const ScalarOpTraits& traits(ScalarOp op) {
  if (static_cast<int>(op) >= count) throw InternalError("a scalar op out of range");
  return table[static_cast<std::size_t>(op)];
}

std::span<const ScalarOpTraits> all_scalar_ops() { return table; }

std::string_view name(ScalarOp op) { return traits(op).name; }

std::optional<ScalarOp> parse_scalar_op(std::string_view text) {
  for (const ScalarOpTraits& row : table)
    if (row.name == text) return row.op;
  return std::nullopt;
}

int arity(ScalarOp op) { return traits(op).arity; }

}  // namespace lathe
