#include "passes/lowering/softmax_divisor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/lowering/point_emitter.h"

namespace lathe {

using Kind = PointInstruction::Kind;

namespace {

/// max(value, constant), in either order.
struct Floor {
  int value;
  double constant;
};
std::optional<Floor> floor_of(const PointProgram& program, int i) {
  const PointInstruction& most = program[i];
  if (most.kind != Kind::scalar || most.op != ScalarOp::max) return std::nullopt;
  for (const std::size_t side : {0U, 1U})
    if (const PointInstruction& other = program[most.args[1 - side]]; other.kind == Kind::constant)
      return Floor{most.args[side], other.value};
  return std::nullopt;
}

/// exp(a - m), m being the maximum of a along the columns.
bool is_exp_below_max(const PointProgram& program, int i) {
  const PointInstruction& exp = program[i];
  if (exp.kind != Kind::scalar || exp.op != ScalarOp::exp) return false;
  const PointInstruction& difference = program[exp.args[0]];
  if (difference.kind != Kind::scalar || difference.op != ScalarOp::sub) return false;
  const PointInstruction& most = program[without_lowest(program, difference.args[1])];
  return most.kind == Kind::reduce && most.op == ScalarOp::max && most.args[0] == difference.args[0];
}

class Divisor {
 public:
  Divisor(PointProgram& program, std::uint64_t columns, bool narrow)
      : program_(program), columns_(columns), narrow_(narrow) {}

  std::optional<SoftmaxDivisor> take_out(int result) {
    const PointInstruction& i = program_[result];
    if (i.kind != Kind::scalar || is_stored(result)) return std::nullopt;
    if (!narrow_ && compute_type(i.dtype) != i.dtype) return std::nullopt;
    if (i.op == ScalarOp::div) {
      if (varies(i.args[1]) || !is_exp_below_max(program_, i.args[0])) return std::nullopt;
      return SoftmaxDivisor{i.args[0], i.args[1]};
    }
    const bool converts = narrow_ && i.op == ScalarOp::cast && is_float(i.dtype);
    if (i.op != ScalarOp::mul && !converts) return std::nullopt;
    for (int side = 0; side < (converts ? 1 : 2); ++side) {
      const auto inner = take_out(i.args[static_cast<std::size_t>(side)]);
      if (!inner) continue;
      PointInstruction scaled = program_[result];
      scaled.args[static_cast<std::size_t>(side)] = inner->value;
      const std::uint64_t depends = program_.depends[static_cast<std::size_t>(result)];
      program_.code.push_back(std::move(scaled));
      program_.depends.push_back(depends);
      return SoftmaxDivisor{program_.size() - 1, inner->divisor};
    }
    return std::nullopt;
  }

 private:
  bool varies(int i) const { return (program_.depends[static_cast<std::size_t>(i)] & columns_) != 0; }

  bool is_stored(int i) const {
    return std::any_of(program_.stores.begin(), program_.stores.end(),
                       [&](const PointStore& store) { return store.value == i; });
  }

  PointProgram& program_;
  std::uint64_t columns_;
  bool narrow_;
};

}  // namespace

int without_lowest(const PointProgram& program, int i) {
  const auto floor = floor_of(program, i);
  const bool is_f64 = compute_type(program[i].dtype) == f64;
  const double lowest = is_f64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
  return floor && floor->constant <= lowest ? floor->value : i;
}

std::optional<SoftmaxDivisor> take_out_divisor(PointProgram& program, int result, std::uint64_t columns,
                                               bool narrow) {
  return Divisor(program, columns, narrow).take_out(result);
}

bool is_softmax_weight(const PointProgram& program, const PointInstruction& i) {
  if (i.kind != Kind::scalar || i.op != ScalarOp::div || !is_exp_below_max(program, i.args[0])) return false;
  const auto floor = floor_of(program, i.args[1]);
  if (floor && !(floor->constant >= 1 && std::isfinite(floor->constant))) return false;
  const int subtracted = program[program[i.args[0]].args[0]].args[1];
  if (!floor && without_lowest(program, subtracted) != subtracted) return false;
  const PointInstruction& sum = program[floor ? floor->value : i.args[1]];
  return sum.kind == Kind::reduce && sum.op == ScalarOp::add && sum.args[0] == i.args[0] &&
         (sum.dtype == f32 || sum.dtype == bf16);
}

}  // namespace lathe
