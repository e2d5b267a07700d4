#include "ir/support/scalar_op.h"

#include "ir/support/error.h"

namespace lathe {

std::string_view name(ScalarOp op) {
  switch (op) {
    case ScalarOp::add: return "add";
    case ScalarOp::sub: return "sub";
    case ScalarOp::mul: return "mul";
    case ScalarOp::div: return "div";
    case ScalarOp::rem: return "rem";
    case ScalarOp::min: return "min";
    case ScalarOp::max: return "max";
    case ScalarOp::pow: return "pow";
    case ScalarOp::neg: return "neg";
    case ScalarOp::abs: return "abs";
    case ScalarOp::sign: return "sign";
    case ScalarOp::floor: return "floor";
    case ScalarOp::round: return "round";
    case ScalarOp::exp: return "exp";
    case ScalarOp::log: return "log";
    case ScalarOp::sqrt: return "sqrt";
    case ScalarOp::rsqrt: return "rsqrt";
    case ScalarOp::sin: return "sin";
    case ScalarOp::cos: return "cos";
    case ScalarOp::tanh: return "tanh";
    case ScalarOp::erf: return "erf";
    case ScalarOp::eq: return "eq";
    case ScalarOp::ne: return "ne";
    case ScalarOp::lt: return "lt";
    case ScalarOp::le: return "le";
    case ScalarOp::logical_and: return "logical_and";
    case ScalarOp::logical_or: return "logical_or";
    case ScalarOp::logical_not: return "logical_not";
    case ScalarOp::bit_and: return "bit_and";
    case ScalarOp::bit_or: return "bit_or";
    case ScalarOp::bit_xor: return "bit_xor";
    case ScalarOp::shift_left: return "shift_left";
    case ScalarOp::shift_right: return "shift_right";
    case ScalarOp::select: return "select";
    case ScalarOp::cast: return "cast";
  }
  throw InternalError("a scalar op out of range");
}

std::optional<ScalarOp> parse_scalar_op(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(ScalarOp::cast); ++i)
    if (name(static_cast<ScalarOp>(i)) == text) return static_cast<ScalarOp>(i);
  return std::nullopt;
}

int arity(ScalarOp op) {
  if (op == ScalarOp::select) return 3;
  if (op == ScalarOp::cast || op == ScalarOp::logical_not) return 1;
  return op >= ScalarOp::neg && op <= ScalarOp::erf ? 1 : 2;
}

}  // namespace lathe
