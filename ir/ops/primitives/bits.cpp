#include "ir/ops/primitives/elementwise.h"

namespace lathe::ir::ops {

namespace {

using std::span;

constexpr NotDifferentiable bits_of_integers{"its operands are integers"};

/// Integers are evaluated exactly by their ScalarOp (ir/tensor/interpret/evaluate_scalar.cpp), never as doubles.
double unused(span<const double>) { return 0; }

std::vector<Sample> mask_samples() { return binary_samples(-70, 70, {i64, i32}, -9, 9); }
/// Counts from below 0 to beyond the width of i32.
std::vector<Sample> shift_samples() { return binary_samples(-2, 40, {i64, i32}, -9, 9); }

constexpr Op bits(std::string_view name, std::string_view doc, ScalarOp op, std::vector<Sample> (*samples)()) {
  return binary(name, doc, op, MixedPrecision::follow, unused, infer_same<rules::integers>, bits_of_integers,
                samples);
}

}  // namespace

constinit const Op bitwise_and =
    bits("bitwise_and", "the bits that both integers have, broadcast", ScalarOp::bit_and, mask_samples);

constinit const Op bitwise_or =
    bits("bitwise_or", "the bits that either integer has, broadcast", ScalarOp::bit_or, mask_samples);

constinit const Op bitwise_xor =
    bits("bitwise_xor", "the bits in which two integers differ, broadcast", ScalarOp::bit_xor, mask_samples);

constinit const Op shift_left =
    bits("shift_left", "a shifted left by b bits; 0 if b is negative or not below the width", ScalarOp::shift_left,
         shift_samples);

constinit const Op shift_right_logical = bits(
    "shift_right_logical", "a shifted right by b bits, with zeros above; 0 if b is negative or not below the width",
    ScalarOp::shift_right, shift_samples);

}  // namespace lathe::ir::ops
