#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr std::string_view not_labels[] = {"dtype_kind"};
constexpr std::string_view shift_labels[] = {"dtype_match", "dtype_kind", "broadcast"};
constexpr NotDifferentiable integer_bits{"its operands are integers"};

TensorType infer_integers(const InferContext& ctx) { return rules::elementwise_type(ctx, rules::integers); }

Value expand_bitwise_not(GraphBuilder&, const Node&, std::span<const Value> operands) {
  return bitwise_xor(operands[0], number_like(operands[0], std::int64_t{-1}));
}

/// Copies of the sign fill the upper bits: a negative number is shifted as its complement, which is not negative.
Value expand_shift_right(GraphBuilder&, const Node&, std::span<const Value> operands) {
  const Value& a = operands[0];
  const Value signs = where(lt(a, std::int64_t{0}), number_like(a, std::int64_t{-1}), std::int64_t{0});
  return bitwise_xor(shift_right_logical(bitwise_xor(a, signs), operands[1]), signs);
}

std::vector<Sample> not_samples() {
  return {{.operands = {{{2, 3}, i64, -9, 9}}, .attrs = {}},
          {.operands = {{{2, 3}, i32, -9, 9}}, .attrs = {}},
          {.operands = {{{1, 1}, i64, -9, 9}}, .attrs = {}},
          {.operands = {{{3, 0}, i64, -9, 9}}, .attrs = {}},
          {.operands = {{{}, i64, -9, 9}}, .attrs = {}}};
}

std::vector<Sample> shift_samples() {
  const auto sample = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b, DType dtype) {
    return Sample{.operands = {{std::move(a), dtype, -90, 90}, {std::move(b), dtype, -2, 40}}, .attrs = {}};
  };
  return {sample({2, 3}, {2, 3}, i64), sample({2, 3}, {2, 3}, i32), sample({2, 3}, {3}, i64),
          sample({3}, {2, 3}, i32),    sample({}, {}, i64),         sample({2, 0}, {1}, i64)};
}

}  // namespace

namespace ops {

constinit const Op bitwise_not =
    composite("bitwise_not", "all bits of an integer inverted: -a - 1", {1, 1}, MixedPrecision::follow, {},
              not_labels, infer_integers, expand_bitwise_not, integer_bits, not_samples);

constinit const Op shift_right = composite(
    "shift_right", "a shifted right by b bits, keeping its sign; 0 or -1 if b is negative or not below the width",
    {2, 2}, MixedPrecision::follow, {}, shift_labels, infer_integers, expand_shift_right, integer_bits,
    shift_samples);

}  // namespace ops

}  // namespace lathe::ir
