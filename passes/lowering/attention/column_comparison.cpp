#include "passes/lowering/attention/column_comparison.h"

#include <cmath>

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

RowColumnForm plus(const RowColumnForm& a, const RowColumnForm& b, std::int64_t sign) {
  return {a.row + sign * b.row, a.column + sign * b.column, a.offset + Dim(sign) * b.offset};
}

/// Whether a few more additions cannot overflow.
bool is_small(const RowColumnForm& form) {
  constexpr std::int64_t most = std::int64_t{1} << 52;
  const auto small = [](std::int64_t n) { return -most <= n && n <= most; };
  return small(form.row) && small(form.column) && small(form.offset.value().value_or(0));
}

class Forms {
 public:
  Forms(const ElementwiseProgram& program, int row_dim, int column_dim)
      : program_(program), row_dim_(row_dim), column_dim_(column_dim) {}

  std::optional<RowColumnForm> form(int value) const {
    std::vector<bool> needed(static_cast<std::size_t>(value) + 1, false);
    needed.back() = true;
    for (std::size_t i = needed.size(); i-- > 0;)
      if (needed[i] && is_sum(program_.code[i]))
        for (const int arg : program_.code[i].args) needed[arg] = true;
    std::vector<std::optional<RowColumnForm>> forms(needed.size());
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) forms[i] = form(program_.code[i], forms);
    return forms.back();
  }

  /// If instruction `i` is an absolute value, returns the form inside.
  std::optional<RowColumnForm> magnitude(int i) const {
    const ElementwiseInstruction& instruction = program_[i];
    if (instruction.kind != Kind::scalar || instruction.dtype != i64 || instruction.op != ScalarOp::abs)
      return std::nullopt;
    return form(instruction.args[0]);
  }

 private:
  /// Whether the instruction has the form of its argument (cast), or the sum or difference of its arguments' forms.
  static bool is_sum(const ElementwiseInstruction& i) {
    return i.kind == Kind::scalar && i.dtype == i64 &&
           (i.op == ScalarOp::cast || i.op == ScalarOp::add || i.op == ScalarOp::sub);
  }

  std::optional<RowColumnForm> form(const ElementwiseInstruction& instruction,
                                    const std::vector<std::optional<RowColumnForm>>& known) const {
    if (instruction.kind == Kind::constant) {
      if (!instruction.value.is_i64() || std::fabs(instruction.value.real()) > 1e15) return std::nullopt;
      return RowColumnForm{0, 0, Dim(instruction.value.integer())};
    }
    if (instruction.kind == Kind::index) return index(instruction.form);
    if (!is_sum(instruction)) return std::nullopt;
    const auto& a = known[instruction.args[0]];
    if (instruction.op == ScalarOp::cast) return a;
    const auto& b = known[instruction.args[1]];
    if (!a || !b || !is_small(*a) || !is_small(*b)) return std::nullopt;
    return plus(*a, *b, instruction.op == ScalarOp::add ? 1 : -1);
  }

  std::optional<RowColumnForm> index(const Linear& linear) const {
    RowColumnForm found{0, 0, linear.offset};
    for (int d = 0; d < static_cast<int>(linear.coefficients.size()); ++d) {
      const auto number = linear.coefficients[d].value();
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

  const ElementwiseProgram& program_;
  int row_dim_, column_dim_;
};

}  // namespace

std::optional<RowColumnComparison> row_column_comparison(const ElementwiseProgram& program, int i, int row_dim,
                                                         int column_dim) {
  const ElementwiseInstruction& comparison = program[i];
  if (comparison.kind != Kind::scalar || (comparison.op != ScalarOp::lt && comparison.op != ScalarOp::le))
    return std::nullopt;
  const Forms forms(program, row_dim, column_dim);
  const int left = comparison.args[0], right = comparison.args[1];
  const RowColumnForm strict{0, 0, Dim(comparison.op == ScalarOp::lt ? 1 : 0)},
      not_strict{0, 0, Dim(1) - strict.offset};
  const auto a = forms.form(left), b = forms.form(right);
  if (a && b) return RowColumnComparison{{plus(plus(*b, *a, -1), strict, -1)}};
  //
  // f
  // < g if g - f > 0 and g + f > 0. g <
  // f
  // is the negation of
  // f
  // <= g.
  const auto within = [](const RowColumnForm& f, const RowColumnForm& g, bool negated) {
    return RowColumnComparison{{plus(g, f, -1), plus(g, f, 1)}, negated};
  };
  if (const auto inside = forms.magnitude(left); inside && b) return within(*inside, plus(*b, strict, -1), false);
  if (const auto inside = forms.magnitude(right); inside && a) return within(*inside, plus(*a, not_strict, -1), true);
  return std::nullopt;
}

}  // namespace lathe
