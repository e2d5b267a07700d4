#include "ir/kernel/build/simplify.h"

#include <algorithm>
#include <cmath>

#include "ir/kernel/interpret/scalar_eval.h"

namespace lathe::kernel {

const Instruction& Simplifier::at(ValueId id) const { return builder.kernel_.values[id]; }

bool Simplifier::is(ValueId id, std::int64_t integer) const {
  const Instruction& in = at(id);
  return in.op == Opcode::constant && !is_float(in.type.scalar) && in.integer == integer;
}

bool Simplifier::is_real(ValueId id, double real, bool negative_zero) const {
  const Instruction& in = at(id);
  return in.op == Opcode::constant && is_float(in.type.scalar) && in.real == real &&
         (real != 0 || std::signbit(in.real) == negative_zero);
}

ValueId Simplifier::integer(Type type, std::int64_t value) {
  return builder.constant_int(type.scalar, value, type.lanes).id;
}

ValueId Simplifier::simplify(Instruction& in) {
  const bool folds = in.op == Opcode::fma || (in.op == Opcode::scalar && !traits(in.scalar_op).transcendental);
  if (folds && std::all_of(in.args.begin(), in.args.end(), [&](ValueId a) { return at(a).op == Opcode::constant; }))
    return fold(in);
  if (in.op == Opcode::scalar) return scalar(in);
  return vector_op(in);
}

ValueId Simplifier::fold(const Instruction& in) {
  std::vector<Scalar> args;
  for (const ValueId arg : in.args) args.push_back(constant_value(at(arg)));
  const DType operand = at(in.args.back()).type.scalar;
  Scalar result;
  if (in.op == Opcode::fma)
    result = evaluate_fma(operand, args[0], args[1], args[2]);
  else if (in.scalar_op == ScalarOp::cast)
    result = evaluate_cast(operand, in.type.scalar, args[0]);
  else
    result = evaluate(in.scalar_op, operand, args);
  if (is_float(in.type.scalar)) return builder.constant(in.type.scalar, result.real, in.type.lanes).id;
  return builder.constant_int(in.type.scalar, result.integer, in.type.lanes).id;
}

ValueId Simplifier::scalar(Instruction& in) {
  if (in.scalar_op == ScalarOp::cast) {
    // A bf16 or f16 value widened to f32 and narrowed again is unchanged.
    const Instruction& from = at(in.args[0]);
    const bool back = from.op == Opcode::scalar && from.scalar_op == ScalarOp::cast && from.type.scalar == f32 &&
                      (in.type.scalar == bf16 || in.type.scalar == f16) && at(from.args[0]).type == in.type;
    return back ? from.args[0] : none;
  }
  if (in.scalar_op == ScalarOp::select) {
    if (is(in.args[0], 1) || in.args[1] == in.args[2]) return in.args[1];
    return is(in.args[0], 0) ? in.args[2] : none;
  }
  const DType operand = at(in.args[0]).type.scalar;
  if (is_float(operand)) return float_identity(in);
  if (operand == boolean) {
    const ValueId identity = boolean_identity(in);
    return identity != none ? identity : uniform_condition(in);
  }
  if (const ValueId uniform = uniform_comparison(in); uniform != none) return uniform;
  const ValueId identity = integer_identity(in);
  return identity != none ? identity : reassociate(in);
}

ValueId Simplifier::integer_identity(Instruction& in) {
  const ScalarOp op = in.scalar_op;
  const bool commutes = op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::bit_and ||
                        op == ScalarOp::bit_or || op == ScalarOp::bit_xor;
  // Moves the constant of a commutative op to the right.
  if (commutes && at(in.args[0]).op == Opcode::constant) std::swap(in.args[0], in.args[1]);
  if (in.args.size() < 2) return none;
  const ValueId a = in.args[0], b = in.args[1];
  const Type type = at(a).type;
  const bool zero = is(b, 0), one = is(b, 1), same = a == b;
  if (op == ScalarOp::add || op == ScalarOp::bit_or || op == ScalarOp::bit_xor || op == ScalarOp::shift_left ||
      op == ScalarOp::shift_right) {
    if (zero) return a;
  }
  if (op == ScalarOp::sub && (zero || same)) return zero ? a : integer(type, 0);
  if (op == ScalarOp::mul && (zero || one)) return zero ? b : a;
  if (op == ScalarOp::bit_and && zero) return b;
  if (op == ScalarOp::div && one) return a;
  if (op == ScalarOp::rem && one) return integer(type, 0);
  if ((op == ScalarOp::div || op == ScalarOp::rem) && is(a, 0)) return a;
  if ((op == ScalarOp::min || op == ScalarOp::max) && same) return a;
  if (same && (op == ScalarOp::eq || op == ScalarOp::le)) return integer(in.type, 1);
  if (same && (op == ScalarOp::ne || op == ScalarOp::lt)) return integer(in.type, 0);
  return none;
}

/// Rewrites x - c to x + -c, and merges the constants of nested additions or multiplications.
ValueId Simplifier::reassociate(Instruction& in) {
  if (in.args.size() < 2 || at(in.args[1]).op != Opcode::constant) return none;
  if (in.scalar_op == ScalarOp::sub) {
    in.scalar_op = ScalarOp::add;
    const std::uint64_t negated = 0 - static_cast<std::uint64_t>(at(in.args[1]).integer);
    in.args[1] = integer(in.type, wrap_to(in.type.scalar, static_cast<std::int64_t>(negated)));
  }
  if (in.scalar_op != ScalarOp::add && in.scalar_op != ScalarOp::mul) return none;
  const Instruction& inner = at(in.args[0]);
  if (inner.op != Opcode::scalar || inner.scalar_op != in.scalar_op) return none;
  if (at(inner.args[1]).op != Opcode::constant) return none;
  const Scalar constants[] = {constant_value(at(inner.args[1])), constant_value(at(in.args[1]))};
  const ValueId rest = inner.args[0];
  const std::int64_t joined = evaluate(in.scalar_op, in.type.scalar, constants).integer;
  if (joined == (in.scalar_op == ScalarOp::add ? 0 : 1)) return rest;
  in.args = {rest, integer(in.type, joined)};
  return none;
}

ValueId Simplifier::float_identity(const Instruction& in) {
  if (in.args.size() < 2) {
    const Instruction& inner = at(in.args[0]);
    const bool twice =
        in.scalar_op == ScalarOp::neg && inner.op == Opcode::scalar && inner.scalar_op == ScalarOp::neg;
    return twice ? inner.args[0] : none;
  }
  const ValueId a = in.args[0], b = in.args[1];
  if (in.scalar_op == ScalarOp::add) return is_real(b, 0, true) ? a : is_real(a, 0, true) ? b : none;
  if (in.scalar_op == ScalarOp::sub) return is_real(b, 0) ? a : none;
  if (in.scalar_op == ScalarOp::mul) return is_real(b, 1) ? a : is_real(a, 1) ? b : none;
  if (in.scalar_op == ScalarOp::div) return is_real(b, 1) ? a : none;
  return none;
}

ValueId Simplifier::boolean_identity(const Instruction& in) {
  const ValueId a = in.args[0];
  if (in.scalar_op == ScalarOp::logical_not) {
    const Instruction& inner = at(a);
    return inner.op == Opcode::scalar && inner.scalar_op == ScalarOp::logical_not ? inner.args[0] : none;
  }
  const ValueId b = in.args[1];
  if (in.scalar_op == ScalarOp::logical_and) {
    if (is(a, 1) || is(b, 0) || a == b) return b;
    if (is(b, 1) || is(a, 0)) return a;
  }
  if (in.scalar_op == ScalarOp::logical_or) {
    if (is(a, 0) || is(b, 1) || a == b) return b;
    if (is(b, 0) || is(a, 1)) return a;
  }
  return none;
}

/// Computes a comparison once if it is the same in every lane. A ramp of n consecutive integers from a multiple of n
/// is entirely below, or entirely at or above, any other multiple of n.
ValueId Simplifier::uniform_comparison(const Instruction& in) {
  const int lanes = in.type.lanes;
  const bool less = in.scalar_op == ScalarOp::lt;
  if (lanes == 1 || (!less && in.scalar_op != ScalarOp::le)) return none;
  const Instruction neighbours = at(in.args[less ? 0 : 1]), bound = at(in.args[less ? 1 : 0]);
  if (neighbours.op != Opcode::ramp || !is(neighbours.args[1], 1)) return none;
  if (bound.op != Opcode::broadcast && bound.op != Opcode::constant) return none;
  const Value first = builder.handle(neighbours.args[0]);
  const Value limit = bound.op == Opcode::constant ? builder.constant_int(bound.type.scalar, bound.integer)
                                                   : builder.handle(bound.args[0]);
  if (builder.divisors_.of(first.id) < lanes || builder.divisors_.of(limit.id) < lanes) return none;
  return builder.broadcast(less ? first < limit : limit <= first, lanes).id;
}

ValueId Simplifier::uniform_condition(const Instruction& in) {
  std::vector<ValueId> scalars;
  for (const ValueId arg : in.args) {
    if (at(arg).op != Opcode::broadcast) return none;
    scalars.push_back(at(arg).args[0]);
  }
  const Value once =
      builder.append({.op = Opcode::scalar, .type = {in.type.scalar, 1}, .scalar_op = in.scalar_op, .args = scalars});
  return builder.broadcast(once, in.type.lanes).id;
}

ValueId Simplifier::vector_op(Instruction& in) {
  const auto constant_lanes = [&](const Instruction& source, int lanes) {
    const DType type = source.type.scalar;
    return is_float(type) ? builder.constant(type, source.real, lanes).id
                          : builder.constant_int(type, source.integer, lanes).id;
  };
  if (in.args.empty()) return none;
  const Instruction source = at(in.args[0]);
  if (in.op == Opcode::broadcast && source.op == Opcode::constant) return constant_lanes(source, in.type.lanes);
  if (in.op == Opcode::extract && source.op == Opcode::constant) return constant_lanes(source, 1);
  if (in.op == Opcode::extract && source.op == Opcode::broadcast) return source.args[0];
  return none;
}

}  // namespace lathe::kernel
