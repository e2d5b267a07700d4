#include "passes/gpu/attention/wgmma/score_scale.h"

#include <algorithm>
#include <cmath>

namespace lathe::gpu {

namespace {

using Kind = ElementwiseInstruction::Kind;

class ScoreScale {
 public:
  ScoreScale(const ElementwiseProgram& program, const ColumnBounds& bounds, int score)
      : program_(program), bounds_(bounds), score_(score) {}

  std::optional<double> scale(int value) const {
    if (value == score_) return 1;
    const ElementwiseInstruction& i = program_[value];
    if (i.kind != Kind::scalar || !is_float(i.dtype)) return std::nullopt;
    switch (i.op) {
      case ScalarOp::cast: return is_float(program_[i.args[0]].dtype) ? scale(i.args[0]) : std::nullopt;
      case ScalarOp::mul:
        if (const auto by = number(i.args[1])) return times(scale(i.args[0]), *by);
        if (const auto by = number(i.args[0])) return times(scale(i.args[1]), *by);
        return std::nullopt;
      case ScalarOp::div:
        if (const auto by = number(i.args[1]); by && *by != 0) return times(scale(i.args[0]), 1 / *by);
        return std::nullopt;
      case ScalarOp::add:
        if (number(i.args[1]) == 0.0) return scale(i.args[0]);
        if (number(i.args[0]) == 0.0) return scale(i.args[1]);
        return std::nullopt;
      case ScalarOp::select:
        if (const auto holds = truth(i.args[0])) return scale(i.args[*holds ? 1 : 2]);
        return std::nullopt;
      default: return std::nullopt;
    }
  }

 private:
  static std::optional<double> times(std::optional<double> scale, double by) {
    return scale ? std::optional(*scale * by) : std::nullopt;
  }

  /// The value of a float that is known when the program is compiled.
  std::optional<double> number(int value) const {
    const ElementwiseInstruction& i = program_[value];
    if (!is_float(i.dtype)) return std::nullopt;
    if (i.kind == Kind::constant) return i.value.real();
    if (i.kind != Kind::scalar) return std::nullopt;
    if (i.op == ScalarOp::cast && is_float(program_[i.args[0]].dtype)) return number(i.args[0]);
    if (i.op != ScalarOp::select) return std::nullopt;
    const auto holds = truth(i.args[0]);
    return holds ? number(i.args[*holds ? 1 : 2]) : std::nullopt;
  }

  std::optional<bool> truth(int value) const {
    const auto inside = std::find_if(bounds_.inside.begin(), bounds_.inside.end(),
                                     [&](const auto& known) { return known.first == value; });
    if (inside != bounds_.inside.end()) return inside->second;
    const ElementwiseInstruction& i = program_[value];
    if (i.kind == Kind::constant) return i.value.real() != 0;
    if (!is_scalar(i, ScalarOp::logical_not)) return std::nullopt;
    const auto of = truth(i.args[0]);
    return of ? std::optional(!*of) : std::nullopt;
  }

  const ElementwiseProgram& program_;
  const ColumnBounds& bounds_;
  int score_;
};

}  // namespace

std::optional<double> scale_of_score(const ElementwiseProgram& program, const ColumnBounds& bounds, int score,
                                     int value) {
  const auto scale = ScoreScale(program, bounds, score).scale(value);
  return scale && std::isnormal(*scale) && *scale > 0 ? scale : std::nullopt;
}

}  // namespace lathe::gpu
