#include "passes/lowering/attention/softmax_divisor.h"

#include <algorithm>

#include "ir/ops/softmax_floors.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

/// If `i` is max(value, floor) in either order, returns the value; otherwise `i`.
int without_floor(const ElementwiseProgram& program, int i, double floor) {
  const ElementwiseInstruction& most = program[i];
  if (most.kind != Kind::scalar || most.op != ScalarOp::max) return i;
  for (const std::size_t side : {0U, 1U})
    if (const ElementwiseInstruction& other = program[most.args[1 - side]];
        other.kind == Kind::constant && other.value == floor)
      return most.args[side];
  return i;
}

/// Matches exp(a - m), where m is the maximum of a along the columns.
bool is_exp_below_max(const ElementwiseProgram& program, int i) {
  const ElementwiseInstruction& exp = program[i];
  if (exp.kind != Kind::scalar || exp.op != ScalarOp::exp) return false;
  const ElementwiseInstruction& difference = program[exp.args[0]];
  if (difference.kind != Kind::scalar || difference.op != ScalarOp::sub) return false;
  const ElementwiseInstruction& most = program[without_least_maximum(program, difference.args[1])];
  return most.kind == Kind::reduce && most.op == ScalarOp::max && most.args[0] == difference.args[0];
}

class Divisor {
 public:
  Divisor(ElementwiseProgram& program, std::uint64_t columns, bool low_precision)
      : program_(program), columns_(columns), low_precision_(low_precision) {}

  std::optional<SoftmaxDivisor> take_out(int result) {
    std::vector<Factor> path = {{result}};
    std::vector<bool> failed(program_.code.size(), false);
    while (!path.empty()) {
      Factor& last = path.back();
      if (is_quotient(last.value)) break;
      if (last.side == sides(last.value)) {
        failed[last.value] = true;
        path.pop_back();
        continue;
      }
      const int next = program_[last.value].args[last.side++];
      if (!failed[next]) path.push_back({next});
    }
    if (path.empty()) return std::nullopt;
    const ElementwiseInstruction& quotient = program_[path.back().value];
    SoftmaxDivisor found{quotient.args[0], quotient.args[1]};
    path.pop_back();
    for (; !path.empty(); path.pop_back()) {
      const Factor& factor = path.back();
      ElementwiseInstruction scaled = program_[factor.value];
      scaled.args[factor.side - 1] = found.value;
      const std::uint64_t depends = program_.depends[factor.value];
      program_.code.push_back(std::move(scaled));
      program_.depends.push_back(depends);
      found.value = program_.size() - 1;
    }
    return found;
  }

 private:
  /// A value on the path from the result to the quotient, and the number of its operands visited so far.
  struct Factor {
    int value;
    int side = 0;
  };

  bool is_free(int i) const {
    const ElementwiseInstruction& in = program_[i];
    return in.kind == Kind::scalar && !is_stored(i) && (low_precision_ || compute_type(in.dtype) == in.dtype);
  }

  bool is_quotient(int i) const {
    const ElementwiseInstruction& in = program_[i];
    return is_free(i) && in.op == ScalarOp::div && !varies(in.args[1]) && is_exp_below_max(program_, in.args[0]);
  }

  /// The number of operands that may contain the quotient: both of a multiplication, the one of a cast.
  int sides(int i) const {
    const ElementwiseInstruction& in = program_[i];
    if (!is_free(i)) return 0;
    if (in.op == ScalarOp::mul) return 2;
    return low_precision_ && in.op == ScalarOp::cast && is_float(in.dtype) ? 1 : 0;
  }

  bool varies(int i) const { return (program_.depends[i] & columns_) != 0; }

  bool is_stored(int i) const {
    return std::any_of(program_.stores.begin(), program_.stores.end(),
                       [&](const ElementwiseStore& store) { return store.value == i; });
  }

  ElementwiseProgram& program_;
  std::uint64_t columns_;
  bool low_precision_;
};

}  // namespace

int without_least_maximum(const ElementwiseProgram& program, int i) {
  return without_floor(program, i, ir::least_softmax_maximum(compute_type(program[i].dtype)));
}

int without_least_sum(const ElementwiseProgram& program, int i) {
  return without_floor(program, i, ir::least_softmax_sum);
}

std::optional<SoftmaxDivisor> take_out_divisor(ElementwiseProgram& program, int result, std::uint64_t columns,
                                               bool low_precision) {
  return Divisor(program, columns, low_precision).take_out(result);
}

bool is_softmax_weight(const ElementwiseProgram& program, const ElementwiseInstruction& i) {
  if (i.kind != Kind::scalar || i.op != ScalarOp::div || !is_exp_below_max(program, i.args[0])) return false;
  const int subtracted = program[program[i.args[0]].args[0]].args[1], behind = without_least_sum(program, i.args[1]);
  const bool sum_may_be_zero = without_least_maximum(program, subtracted) != subtracted;
  if (sum_may_be_zero && behind == i.args[1]) return false;
  const ElementwiseInstruction& sum = program[behind];
  return sum.kind == Kind::reduce && sum.op == ScalarOp::add && sum.args[0] == i.args[0] &&
         (sum.dtype == f32 || sum.dtype == bf16);
}

}  // namespace lathe
