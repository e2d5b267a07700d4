#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

/// The scalar operations that every level of Lathe knows: element-wise tensor ops name one each, kernel IR computes
/// with them, and every emitter implements exactly these. Operand types are equal but for `select` (bool, T, T) and
/// `cast`; comparisons give bool.
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

std::string_view name(ScalarOp op);
std::optional<ScalarOp> parse_scalar_op(std::string_view text);
int arity(ScalarOp op);

}  // namespace lathe
