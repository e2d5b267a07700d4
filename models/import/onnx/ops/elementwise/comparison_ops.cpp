#include <limits>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/sizes/dim_functions.h"

namespace lathe::onnx {

namespace {

using importing::combine;
using importing::negated;

template <class Op>
Results compare(const OpCall& call) {
  return {Op()(call.tensor(0), call.tensor(1))};
}

/// Bools are compared as numbers.
Tensor comparable(const Tensor& a) { return a.dtype() == boolean ? a.to(i32) : a; }

struct Equal {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return comparable(a) == comparable(b); }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return importing::is_equal(a, b); }
};
struct Less {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a < b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return importing::is_less(a, b); }
};
struct LessOrEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a <= b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return negated(importing::is_less(b, a)); }
};
struct Greater {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a > b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return importing::is_less(b, a); }
};
struct GreaterOrEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a >= b; }
  std::optional<Dim> operator()(const Dim& a, const Dim& b) const { return negated(importing::is_less(a, b)); }
};

template <class Op>
std::optional<DimTensor> folded_comparison(const OpCall& call) {
  return combine(*call.operand(0).dims(), *call.operand(1).dims(), boolean, Op());
}

Results logical_not(const OpCall& call) { return {~call.tensor(0)}; }

template <class Op>
Results bitwise(const OpCall& call) {
  return {widened([](const Tensor& a, const Tensor& b) { return Op()(a, b); }, call.tensor(0), call.tensor(1))};
}
Results bitwise_inverse(const OpCall& call) {
  return {widened([](const Tensor& a) { return bitwise_not(a); }, call.tensor(0))};
}

/// The format shifts unsigned integers, and Lathe has one unsigned dtype, u8.
Results bit_shift(const OpCall& call) {
  const std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    call.fail("the attribute direction is '" + direction + "', not LEFT or RIGHT", "import_attribute");
  const bool is_left = direction == "LEFT";
  return {widened([&](const Tensor& a, const Tensor& b) { return is_left ? shift_left(a, b) : shift_right(a, b); },
                  call.tensor(0), call.tensor(1))};
}

Results is_nan(const OpCall& call) { return {isnan(call.tensor(0))}; }

Results is_inf(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const double inf = std::numeric_limits<double>::infinity();
  const bool negative = call.flag("detect_negative", true), positive = call.flag("detect_positive", true);
  if (negative && positive) return {abs(x) == inf};
  if (!negative && !positive) return {isnan(x) & ~isnan(x)};
  return {x == (positive ? inf : -inf)};
}

Results where_op(const OpCall& call) { return {where(call.tensor(0), call.tensor(1), call.tensor(2))}; }

}  // namespace

std::span<const OpRecord> comparison_ops() {
  static constexpr OpRecord records[] = {
      {"Equal", 7, latest, "", compare<Equal>, Moves::none, folded_comparison<Equal>},
      {"Less", 7, latest, "", compare<Less>, Moves::none, folded_comparison<Less>},
      {"LessOrEqual", 12, latest, "", compare<LessOrEqual>, Moves::none, folded_comparison<LessOrEqual>},
      {"Greater", 7, latest, "", compare<Greater>, Moves::none, folded_comparison<Greater>},
      {"GreaterOrEqual", 12, latest, "", compare<GreaterOrEqual>, Moves::none, folded_comparison<GreaterOrEqual>},
      {"And", 7, latest, "", compare<And>},
      {"Or", 7, latest, "", compare<Or>},
      {"Xor", 7, latest, "", compare<Xor>},
      {"Not", 1, latest, "", logical_not},
      {"BitwiseAnd", 18, latest, "", bitwise<And>},
      {"BitwiseOr", 18, latest, "", bitwise<Or>},
      {"BitwiseXor", 18, latest, "", bitwise<Xor>},
      {"BitwiseNot", 18, latest, "", bitwise_inverse},
      {"BitShift", 11, latest, "direction", bit_shift},
      {"IsNaN", 9, latest, "", is_nan},
      {"IsInf", 10, latest, "detect_negative detect_positive", is_inf},
      {"Where", 9, latest, "", where_op, Moves::branches},
  };
  return records;
}

}  // namespace lathe::onnx
