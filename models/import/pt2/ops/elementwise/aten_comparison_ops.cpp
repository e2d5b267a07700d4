#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/networks/safe_softmax.h"

namespace lathe::pt2 {

namespace {

struct Equal {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a == b; }
};
struct Unequal {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a != b; }
};
struct Less {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a < b; }
};
struct LessOrEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a <= b; }
};
struct Greater {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a > b; }
};
struct GreaterOrEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a >= b; }
};

/// Bools are compared as numbers.
template <class Op>
Results compare(const OpCall& call) {
  const DType common = promoted(call, {0, 1}), dtype = common == boolean ? i32 : common;
  const auto compared = [&](std::size_t i) {
    return common == boolean ? operand_as(call, i, boolean).to(i32) : operand_as(call, i, dtype);
  };
  return {Op()(compared(0), compared(1))};
}

template <class Op>
Results logical(const OpCall& call) {
  return {Op()(truth(call.tensor(0)), truth(call.tensor(1)))};
}
Results logical_not(const OpCall& call) { return {~truth(call.tensor(0))}; }

template <class Op>
Results bitwise(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  return {widened([](const Tensor& a, const Tensor& b) { return Op()(a, b); }, operand_as(call, 0, dtype),
                  operand_as(call, 1, dtype))};
}
Results bitwise_inverse(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.dtype() == boolean) return {~x};
  return {widened([](const Tensor& a) { return bitwise_not(a); }, x)};
}

Results where_op(const OpCall& call) {
  const DType dtype = promoted(call, {1, 2});
  const Tensor condition = truth(call.tensor(0)), a = operand_as(call, 1, dtype), b = operand_as(call, 2, dtype);
  if (const std::optional<Tensor> weights = safe_softmax_of(condition, a, b)) return {*weights};
  return {where(condition, a, b)};
}

/// The mask and the tensor broadcast; the value takes the tensor's dtype.
Results masked_fill_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {where(call.tensor(1), operand_as(call, 2, x.dtype()), x)};
}

}  // namespace

std::span<const OpRecord> aten_comparison_ops() {
  static constexpr OpRecord records[] = {
      aten("eq.Tensor", "self other", "", compare<Equal>),
      aten("eq.Scalar", "self other", "", compare<Equal>),
      aten("ne.Tensor", "self other", "", compare<Unequal>),
      aten("ne.Scalar", "self other", "", compare<Unequal>),
      aten("lt.Tensor", "self other", "", compare<Less>),
      aten("lt.Scalar", "self other", "", compare<Less>),
      aten("le.Tensor", "self other", "", compare<LessOrEqual>),
      aten("le.Scalar", "self other", "", compare<LessOrEqual>),
      aten("gt.Tensor", "self other", "", compare<Greater>),
      aten("gt.Scalar", "self other", "", compare<Greater>),
      aten("ge.Tensor", "self other", "", compare<GreaterOrEqual>),
      aten("ge.Scalar", "self other", "", compare<GreaterOrEqual>),
      aten("logical_and", "self other", "", logical<And>),
      aten("logical_or", "self other", "", logical<Or>),
      aten("logical_xor", "self other", "", logical<Xor>),
      aten("logical_not", "self", "", logical_not),
      aten("bitwise_and.Tensor", "self other", "", bitwise<And>),
      aten("bitwise_and.Scalar", "self other", "", bitwise<And>),
      aten("bitwise_or.Tensor", "self other", "", bitwise<Or>),
      aten("bitwise_or.Scalar", "self other", "", bitwise<Or>),
      aten("bitwise_xor.Tensor", "self other", "", bitwise<Xor>),
      aten("bitwise_xor.Scalar", "self other", "", bitwise<Xor>),
      aten("bitwise_not", "self", "", bitwise_inverse),
      aten("where.self", "condition self other", "", where_op),
      aten("where.ScalarSelf", "condition self other", "", where_op),
      aten("where.ScalarOther", "condition self other", "", where_op),
      aten("where.Scalar", "condition self other", "", where_op),
      aten("masked_fill.Scalar", "self mask value", "", masked_fill_op),
      aten("masked_fill.Tensor", "self mask value", "", masked_fill_op),
  };
  return records;
}

}  // namespace lathe::pt2
