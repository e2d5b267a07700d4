#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lathe {

/// The scalar operations shared by all levels of Lathe. Each elementwise tensor op names one, kernel IR computes with
/// them, and every emitter implements exactly these. Operand types are equal except for `select` (bool, T, T) and
/// `cast`; comparisons return bool.
enum class ScalarOp : std::uint8_t {  // clang-format off
  add, sub, mul, div,      // div of integers truncates towards zero
  rem,                     // integer remainder with the sign of the dividend
  min, max,                // of floats: NaN if either is NaN
  pow,                     // floats
  neg, abs, sign, floor, round,  // round: half to even
  exp, log, sqrt, rsqrt, sin, cos, tanh, erf,
  eq, ne, lt, le,          // with NaN: false, but `ne` true
  logical_and, logical_or, logical_not,  // bool
  bit_and, bit_or, bit_xor, shift_left, shift_right,  // i64, i32; shift_right is logical
  select,                  // condition, if true, if false
  cast,                    // between any two real types; float -> integer truncates; x -> bool is x != 0
};  // clang-format on

/// The real operand types of a scalar operation; 16-bit floats are computed in f32.
enum class ScalarOperands : std::uint8_t { numbers, numbers_or_bools, integers, floats, bools, any };

/// Properties of a scalar operation: a row of the table in scalar_op.cpp.
struct ScalarOpTraits {
  ScalarOp op;
  std::string_view name;
  int arity;
  ScalarOperands operands;
  int cost = 1;                 ///< per element, in additions; decides whether to recompute
  bool rounds = false;          ///< a float result is rounded
  bool commutes = false;        ///< operands may be swapped
  bool transcendental = false;  ///< on floats, uses a library or a polynomial; last bits differ between machines
  bool compares = false;        ///< returns bool
};
const ScalarOpTraits& traits(ScalarOp op);
std::span<const ScalarOpTraits> all_scalar_ops();

std::string_view name(ScalarOp op);
std::optional<ScalarOp> parse_scalar_op(std::string_view text);
int arity(ScalarOp op);

}  // namespace lathe
