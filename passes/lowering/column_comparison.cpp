#include "passes/lowering/column_comparison.h"

#include <cmath>

namespace lathe {

using Kind = PointInstruction::Kind;

namespace {

RowColumnForm plus(const RowColumnForm& a, const RowColumnForm& b, std::int64_t sign) {
  return {a.row + sign * b.row, a.column + sign * b.column, a.offset + Dim(sign) * b.offset};
}

class Forms {
 public:
  Forms(const PointProgram& program, int row_dim, int column_dim)
      : program_(program), row_dim_(row_dim), column_dim_(column_dim) {}

  std::optional<RowColumnForm> form(int i) const {
    const PointInstruction& instruction = program_[i];
    if (instruction.kind == Kind::constant) {
      if (instruction.value != std::floor(instruction.value) || std::fabs(instruction.value) > 1e15)
        return std::nullopt;
      return RowColumnForm{0, 0, Dim(static_cast<std::int64_t>(instruction.value))};
    }
    if (instruction.kind == Kind::index) return index(instruction.form);
    if (instruction.kind != Kind::scalar || instruction.dtype != i64) return std::nullopt;
    if (instruction.op == ScalarOp::cast) return form(instruction.args[0]);
    if (instruction.op != ScalarOp::add && instruction.op != ScalarOp::sub) return std::nullopt;
    const auto a = form(instruction.args[0]), b = form(instruction.args[1]);
    if (!a || !b) return std::nullopt;
    return plus(*a, *b, instruction.op == ScalarOp::add ? 1 : -1);
  }

  /// Of an absolute value: the form inside.
  std::optional<RowColumnForm> magnitude(int i) const {
    const PointInstruction& instruction = program_[i];
    if (instruction.kind != Kind::scalar || instruction.dtype != i64 || instruction.op != ScalarOp::abs)
      return std::nullopt;
    return form(instruction.args[0]);
  }

 private:
  std::optional<RowColumnForm> index(const Linear& linear) const {
    RowColumnForm found{0, 0, linear.offset};
    for (int d = 0; d < static_cast<int>(linear.coefficients.size()); ++d) {
      const auto number = linear.coefficients[static_cast<std::size_t>(d)].value();
      if (!number) return std::nullopt;
      if (d == row_dim_)
        found.row = *number;
      else if (d == column_dim_)
        found.column = *number;
      else if (*number != 0)
        return std::nullopt;
    }
    return found;
  }

  const PointProgram& program_;
  int row_dim_, column_dim_;
};

}  // namespace

std::optional<RowColumnComparison> row_column_comparison(const PointProgram& program, int i, int row_dim,
                                                         int column_dim) {
  const PointInstruction& comparison = program[i];
  if (comparison.kind != Kind::scalar || (comparison.op != ScalarOp::lt && comparison.op != ScalarOp::le))
    return std::nullopt;
  const Forms forms(program, row_dim, column_dim);
  const int left = comparison.args[0], right = comparison.args[1];
  const RowColumnForm strict{0, 0, Dim(comparison.op == ScalarOp::lt ? 1 : 0)},
      not_strict{0, 0, Dim(1) - strict.offset};
  const auto a = forms.form(left), b = forms.form(right);
  if (a && b) return RowColumnComparison{{plus(plus(*b, *a, -1), strict, -1)}};
  // |f| < g where g - f > 0 and g + f > 0; g < |f| where it is not the case that |f| <= g.
  const auto within = [](const RowColumnForm& f, const RowColumnForm& g, bool negated) {
    return RowColumnComparison{{plus(g, f, -1), plus(g, f, 1)}, negated};
  };
  if (const auto inside = forms.magnitude(left); inside && b) return within(*inside, plus(*b, strict, -1), false);
  if (const auto inside = forms.magnitude(right); inside && a) return within(*inside, plus(*a, not_strict, -1), true);
  return std::nullopt;
}

}  // namespace lathe
