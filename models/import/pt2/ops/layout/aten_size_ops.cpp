#include <fmt/core.h>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/ops/sizes/dim_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Sizes as numbers, and arithmetic on them. A result that is no polynomial of sizes is computed at run time.
namespace lathe::pt2 {

namespace {

using importing::combine;
using importing::negated;

/// The size of a dim, which is known at import.
Results size_of(const OpCall& call) {
  const Shape shape = call.operand(0).shape();
  const int axis = axis_argument(call, shape.rank());
  if (axis >= shape.rank()) call.fail("the operand has no dims", "import_operand");
  return {Value(DimTensor{i64, {}, {shape[axis].unnamed()}})};
}
Results numel_of(const OpCall& call) {
  return {Value(DimTensor{i64, {}, {call.operand(0).shape().numel().unnamed()}})};
}

/// The number in a tensor of one element, such as an input that is fixed at import.
Results item_of(const OpCall& call) {
  const Value& x = call.operand(0);
  return {x.rank() == 0 ? x : Value(call.tensor(0).reshape({}))};
}

/// Returns whether the operands are integers; otherwise they are floats of Python, which have 64 bits.
bool are_whole(const OpCall& call) {
  for (std::size_t i = 0; i < call.count(); ++i)
    if (is_float(call.dtype(i))) return false;
  return true;
}
Tensor number(const OpCall& call, std::size_t i) { return call.tensor(i).to(are_whole(call) ? i64 : f64); }

template <class Op>
Results arithmetic(const OpCall& call) {
  return {Op()(number(call, 0), number(call, 1))};
}
template <class Op>
std::optional<DimTensor> folded(const OpCall& call) {
  return combine(*call.operand(0).dims(), *call.operand(1).dims(), i64, Op());
}
/// Quotients and remainders are known at import if the divisor divides the size.
template <class Op>
std::optional<DimTensor> folded_division(const OpCall& call) {
  return combine(*call.operand(0).dims(), *call.operand(1).dims(), i64, [&](const Dim& a, const Dim& b) {
    auto result = Op()(a, b);
    if (!result) call.note_division(a, b);
    return result;
  });
}
template <class Op>
std::optional<DimTensor> folded_comparison(const OpCall& call) {
  return combine(*call.operand(0).dims(), *call.operand(1).dims(), boolean, Op());
}

using MaybeDim = std::optional<Dim>;

struct SizeAdd {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a + b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return a + b; }
};
struct SizeSub {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a - b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return a - b; }
};
struct SizeMul {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a * b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return a * b; }
};
struct SizeFloorDiv {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return importing::floor_quotient(a, b); }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::quotient(a, b, true); }
};
struct SizeMod {
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    return is_float(a.dtype()) ? importing::float_remainder(a, b, false) : importing::floor_remainder(a, b);
  }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::remainder(a, b); }
};
struct SizeMax {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return maximum(a, b); }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::larger(a, b); }
};
struct SizeMin {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return minimum(a, b); }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::smaller(a, b); }
};
struct SizePow {
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    return is_float(a.dtype()) ? pow(a, b) : pow(a.to(f64), b.to(f64)).round().to(i64);
  }
  MaybeDim operator()(const Dim& a, const Dim& b) const {
    constexpr std::int64_t most = 8;
    if (!b.value() || *b.value() < 0 || *b.value() > most) return std::nullopt;
    Dim result = 1;
    for (std::int64_t i = 0; i < *b.value(); ++i) result = result * a;
    return result;
  }
};
struct SizeEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a == b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::is_equal(a, b); }
};
struct SizeUnequal {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a != b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return negated(importing::is_equal(a, b)); }
};
struct SizeLess {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a < b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::is_less(a, b); }
};
struct SizeLessOrEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a <= b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return negated(importing::is_less(b, a)); }
};
struct SizeGreater {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a > b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return importing::is_less(b, a); }
};
struct SizeGreaterOrEqual {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a >= b; }
  MaybeDim operator()(const Dim& a, const Dim& b) const { return negated(importing::is_less(a, b)); }
};

Results true_quotient(const OpCall& call) { return {call.tensor(0).to(f64) / call.tensor(1).to(f64)}; }
Results to_real(const OpCall& call) { return {call.tensor(0).to(f64)}; }
Results to_whole(const OpCall& call) {
  if (!is_float(call.dtype(0))) return {call.operand(0)};
  return {call.tensor(0).trunc().to(i64)};
}
Results root(const OpCall& call) { return {sqrt(call.tensor(0).to(f64))}; }
Results negative(const OpCall& call) { return {-call.tensor(0)}; }
std::optional<DimTensor> folded_negative(const OpCall& call) {
  const DimTensor a = *call.operand(0).dims();
  return combine(a, a, i64, [](const Dim& x, const Dim&) { return Dim(0) - x; });
}
Results opposite(const OpCall& call) { return {~call.tensor(0).to(boolean)}; }
std::optional<DimTensor> folded_opposite(const OpCall& call) {
  const DimTensor a = *call.operand(0).dims();
  return combine(a, a, boolean, [](const Dim& x, const Dim&) { return negated(x); });
}
Results both(const OpCall& call) { return {call.tensor(0).to(boolean) & call.tensor(1).to(boolean)}; }
Results either(const OpCall& call) { return {call.tensor(0).to(boolean) | call.tensor(1).to(boolean)}; }

/// Limits of a size: those that do not hold at import are errors, and unknown ones are in the ranges of the program.
Results constrain_range(const OpCall& call) {
  const std::optional<DimTensor> size = call.operand(0).dims();
  if (!size) call.fail("the size is computed at run time", "import_size", "sizes must follow from those of inputs");
  const std::optional<std::int64_t> known = size->elements[0].value();
  if (known && call.has("min") && *known < call.integer("min"))
    call.fail(fmt::format("the size {} is less than {}", *known, call.integer("min")), "import_range");
  if (known && call.has("max") && *known > call.integer("max"))
    call.fail(fmt::format("the size {} is more than {}", *known, call.integer("max")), "import_range");
  call.ignore({"min", "max"});
  return {};
}

/// Conditions on sizes that are not known at import are recorded by SizeAssertions.
Results assert_scalar(const OpCall& call) {
  const std::string message = call.text("assert_msg", "");
  const std::optional<DimTensor> condition = call.operand(0).dims();
  if (!condition || !condition->elements[0].value())
    call.fail(fmt::format("the program checks values of a run: {}", message), "import_unsupported",
              "fix the inputs that the values follow from at import, or remove the check before the export");
  if (condition->elements[0].is(0))
    call.fail(fmt::format("a check of the program fails: {}", message), "import_range");
  return {};
}

Results is_all_true(const OpCall& call) { return {call.tensor(0).all()}; }

/// A condition on the elements of tensors, such as those that torch.distributions checks of its parameters.
Results assert_condition(const OpCall& call) {
  const std::string message = call.text("assert_msg", "");
  // run_decompositions() adds this check. Lathe's one_hot is all 0 for such a class.
  if (message.starts_with("one_hot: Class values must be ")) return {};
  const HostTensor* const known = call.operand(0).constant();
  if (!known)
    call.fail(fmt::format("the program checks values of a run: {}", message), "import_unsupported",
              "remove the check before the export; torch.distributions.Distribution.set_default_validate_args(False) "
              "removes those of distributions");
  if (known->numel() != 1 || known->get(0) == 0)
    call.fail(fmt::format("a check of the program fails: {}", message), "import_range");
  return {};
}

}  // namespace

std::span<const OpRecord> aten_size_ops() {
  static constexpr OpRecord records[] = {
      aten("sym_size.int", "self", "dim", size_of),
      aten("sym_numel", "self", "", numel_of),
      aten("item", "self", "", item_of, Moves::first),
      aten("_local_scalar_dense", "self", "", item_of, Moves::first),
      aten("sym_constrain_range", "size", "min max", constrain_range),
      aten("sym_constrain_range_for_size", "size", "min max", constrain_range),
      aten("_assert_scalar", "self", "assert_msg", assert_scalar),
      aten("_assert_async", "self", "", assert_condition),
      aten("_assert_async.msg", "self", "assert_msg", assert_condition),
      aten("_is_all_true", "self", "", is_all_true),
  };
  return records;
}

std::span<const OpRecord> operator_ops() {
  static constexpr OpRecord records[] = {
      aten("add", "a b", "", arithmetic<SizeAdd>, Moves::none, folded<SizeAdd>),
      aten("sub", "a b", "", arithmetic<SizeSub>, Moves::none, folded<SizeSub>),
      aten("mul", "a b", "", arithmetic<SizeMul>, Moves::none, folded<SizeMul>),
      aten("floordiv", "a b", "", arithmetic<SizeFloorDiv>, Moves::none, folded_division<SizeFloorDiv>),
      aten("mod", "a b", "", arithmetic<SizeMod>, Moves::none, folded_division<SizeMod>),
      aten("pow", "a b", "", arithmetic<SizePow>, Moves::none, folded<SizePow>),
      aten("truediv", "a b", "", true_quotient),
      aten("neg", "a", "", negative, Moves::none, folded_negative),
      aten("pos", "a", "", [](const OpCall& call) -> Results { return {call.operand(0)}; }),
      aten("eq", "a b", "", arithmetic<SizeEqual>, Moves::none, folded_comparison<SizeEqual>),
      aten("ne", "a b", "", arithmetic<SizeUnequal>, Moves::none, folded_comparison<SizeUnequal>),
      aten("lt", "a b", "", arithmetic<SizeLess>, Moves::none, folded_comparison<SizeLess>),
      aten("le", "a b", "", arithmetic<SizeLessOrEqual>, Moves::none, folded_comparison<SizeLessOrEqual>),
      aten("gt", "a b", "", arithmetic<SizeGreater>, Moves::none, folded_comparison<SizeGreater>),
      aten("ge", "a b", "", arithmetic<SizeGreaterOrEqual>, Moves::none, folded_comparison<SizeGreaterOrEqual>),
      aten("and_", "a b", "", both),
      aten("or_", "a b", "", either),
  };
  return records;
}

std::span<const OpRecord> math_ops() {
  static constexpr OpRecord records[] = {aten("trunc", "x", "", to_whole)};
  return records;
}

std::span<const OpRecord> symbolic_ops() {
  static constexpr OpRecord records[] = {
      aten("sym_max", "a b", "", arithmetic<SizeMax>, Moves::none, folded<SizeMax>),
      aten("sym_min", "a b", "", arithmetic<SizeMin>, Moves::none, folded<SizeMin>),
      aten("sym_not", "a", "", opposite, Moves::none, folded_opposite),
      aten("sym_float", "a", "", to_real),
      aten("sym_int", "a", "", to_whole),
      aten("sym_sqrt", "a", "", root),
  };
  return records;
}

}  // namespace lathe::pt2
