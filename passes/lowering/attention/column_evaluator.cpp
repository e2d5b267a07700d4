#include "passes/lowering/attention/column_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/lowering/attention/column_comparison.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double largest_exponent = 37;  // power of ten that is safe in f32

/// A proven property of a value at the columns on one side.
struct Known {
  enum class Kind {
    nothing,
    at_most,  ///< at most upper + scale * magnitude + rows; exactly upper where `exact`
    finite,   ///< absolute value below 10^exponent and below scale * magnitude
    zero,
  };
  Kind kind = Kind::nothing;
  double upper = 0, scale = 0, exponent = 0;
  bool exact = false;
  std::vector<std::pair<int, int>> rows = {};

  static Known constant(double value) { return {Kind::at_most, value, 0, 0, true, {}}; }
  bool is_constant() const { return kind == Kind::at_most && exact; }
  bool is_zero() const { return kind == Kind::zero || (is_constant() && upper == 0); }
  bool is_finite() const {
    return kind == Kind::finite || kind == Kind::zero || (is_constant() && std::isfinite(upper));
  }
  double log_magnitude() const {
    if (kind == Kind::finite) return exponent;
    return kind == Kind::at_most && upper != 0 ? std::log10(std::fabs(upper)) : -45;
  }
};

/// Evaluates an elementwise program at the columns on one side of a diagonal.
class Evaluator {
 public:
  Evaluator(const ElementwiseProgram& program, const ColumnSide& side) : program_(program), side_(side) {}

  bool contributes_nothing(const std::vector<int>& results, const std::vector<int>& anything, ColumnBounds& bounds) {
    bounds_ = &bounds;
    anything_ = &anything;
    for (int i = 0; i < program_.size(); ++i) known_.push_back(varies(i) ? evaluate(i) : row_value(i));
    for (int i = 0; i < program_.size(); ++i)
      if (program_[i].kind == Kind::reduce && !ignored_by(i)) return false;
    return std::all_of(results.begin(), results.end(), [&](int i) { return known_[at(i)].is_zero(); });
  }

  std::vector<std::pair<int, bool>> comparisons() {
    std::vector<std::pair<int, bool>> found;
    known_.resize(program_.code.size());
    for (int i = 0; i < program_.size(); ++i)
      if (program_[i].kind == Kind::scalar && (program_[i].op == ScalarOp::lt || program_[i].op == ScalarOp::le))
        if (const Known holds = comparison(i); holds.is_constant()) found.emplace_back(i, holds.upper != 0);
    return found;
  }

 private:
  bool varies(int i) const { return (program_.depends[at(i)] >> side_.column_dim & 1) != 0; }
  const Known& arg(int i, int n) const { return known_[at(program_[i].args[at(n)])]; }

  bool ignored_by(int i) {
    const Known& value = arg(i, 0);
    if (program_[i].op == ScalarOp::add) return value.is_zero();
    if (program_[i].op != ScalarOp::max) return false;
    if (value.kind != Known::Kind::at_most) return false;
    ColumnBounds::Check check{value.upper, value.scale, value.rows, 0};
    check.rows.emplace_back(i, -1);
    bounds_->checks.push_back(std::move(check));
    return true;
  }

  /// A float that does not vary along the columns. The kernel can check at run time that it is finite.
  Known row_value(int i) const {
    const ElementwiseInstruction& instruction = program_[i];
    if (instruction.kind == Kind::constant)
      return instruction.value.is_double() ? Known::constant(instruction.value.real()) : Known{};
    if (!is_float(instruction.dtype)) return {};
    return {Known::Kind::finite, 0, unbounded, std::log10(row_limit), false, {{i, 1}}};
  }

  /// If `known` is a row value, adds it to the values that must be finite.
  void need_finite(const Known& known) const {
    if (known.kind == Known::Kind::finite)
      for (const auto& [row, sign] : known.rows) bounds_->finite.push_back(row);
  }

  Known finite(double exponent, double scale = unbounded) const {
    if (exponent > largest_exponent) return {};
    return {Known::Kind::finite, 0, scale, exponent, false, {}};
  }

  Known evaluate(int i) {
    const ElementwiseInstruction& instruction = program_[i];
    switch (instruction.kind) {
      case Kind::accumulator:
        if (std::find(anything_->begin(), anything_->end(), i) != anything_->end()) return {};
        return finite(std::log10(score_limit), 1);
      case Kind::random: return finite(0, 1);
      case Kind::scalar: return scalar(i);
      case Kind::constant:
      case Kind::index:
      case Kind::in_bounds:
      case Kind::load:
      case Kind::checked:
      case Kind::gather:
      case Kind::row_sum:
      case Kind::column:
      case Kind::reduce: break;
    }
    return {};
  }

  Known scalar(int i) {
    const ElementwiseInstruction& instruction = program_[i];
    using enum ScalarOp;
    switch (instruction.op) {
      case lt:
      case le: return comparison(i);
      case eq:
      case ne:
        if (arg(i, 0).is_constant() && arg(i, 1).is_constant())
          return Known::constant((arg(i, 0).upper == arg(i, 1).upper) == (instruction.op == eq));
        return {};
      case logical_not: return arg(i, 0).is_constant() ? Known::constant(arg(i, 0).upper == 0) : Known{};
      case logical_and:
      case logical_or: return junction(i);
      case select: return selected(i);
      case cast: return converted(i);
      case neg: {
        Known value = arg(i, 0);
        if (value.is_constant()) return Known::constant(-value.upper);
        return value.kind == Known::Kind::at_most ? Known{} : value;
      }
      case add: return sum(arg(i, 0), arg(i, 1), 1);
      case sub: return sum(arg(i, 0), arg(i, 1), -1);
      case mul: return product(arg(i, 0), arg(i, 1));
      case div: return quotient(i);
      case exp: return exponential(i);
      case tanh:
      case sin:
      case cos:
      case erf: return arg(i, 0).is_finite() ? (need_finite(arg(i, 0)), finite(0, 1)) : Known{};
      default: return {};
    }
  }

  Known converted(int i) const {
    const Known& value = arg(i, 0);
    if (!value.is_constant()) return value;
    const DType dtype = program_[i].dtype;
    const Number number(value.upper);
    if (is_float(dtype)) return Known::constant(number.rounded_to(dtype).real());
    return number.fits(dtype) ? value : Known{};
  }

  Known comparison(int i) const {
    if (const auto asked = row_column_comparison(program_, i, side_.row_dim, side_.column_dim)) {
      int hold = 0;
      for (const RowColumnForm& form : asked->forms) {
        const auto holds = holds_there(form);
        if (holds && !*holds) return Known::constant(asked->negated ? 1 : 0);
        if (holds) ++hold;
      }
      if (hold == static_cast<int>(asked->forms.size())) return Known::constant(asked->negated ? 0 : 1);
    }
    const Known &a = known_[at(program_[i].args[0])], &b = known_[at(program_[i].args[1])];
    const bool strict = program_[i].op == ScalarOp::lt;
    if (a.is_constant() && b.is_constant()) return Known::constant(strict ? a.upper < b.upper : a.upper <= b.upper);
    return {};
  }

  /// Returns whether the form is >= 0: true or false if that holds at all the columns, otherwise nullopt.
  std::optional<bool> holds_there(const RowColumnForm& form) const {
    if (form.row == 1 && form.column == -1) return within(form.offset);
    if (form.row != -1 || form.column != 1) return {};
    const auto opposite = within(Dim(0) - form.offset - Dim(1));
    return opposite ? std::optional(!*opposite) : std::nullopt;
  }

  /// Same for column <= row + offset.
  std::optional<bool> within(const Dim& offset) const {
    const auto gap = (side_.edge - offset).value();
    if (!gap) return {};
    if (side_.above && *gap >= 0) return false;  // column > row + edge
    if (!side_.above && *gap <= 1) return true;  // column < row + edge
    return {};
  }

  Known junction(int i) const {
    const double deciding = program_[i].op == ScalarOp::logical_and ? 0 : 1;
    const Known &a = arg(i, 0), &b = arg(i, 1);
    const auto is = [&](const Known& k, bool decides) {
      return k.is_constant() && ((k.upper != 0) == (deciding != 0)) == decides;
    };
    if (is(a, true) || is(b, true)) return Known::constant(deciding);
    if (is(a, false) && is(b, false)) return Known::constant(1 - deciding);
    return {};
  }

  Known selected(int i) const {
    const Known &condition = arg(i, 0), &yes = arg(i, 1), &no = arg(i, 2);
    if (condition.is_constant()) return condition.upper != 0 ? yes : no;
    using K = Known::Kind;
    if (yes.is_zero() && no.is_zero()) return yes;
    if (yes.kind == K::at_most && no.kind == K::at_most && yes.rows.empty() && no.rows.empty()) {
      if (yes.is_finite() && no.is_finite() && (yes.upper >= 0 || no.upper >= 0)) {
        return finite(std::max(yes.log_magnitude(), no.log_magnitude()),
                      std::max(std::fabs(yes.upper), std::fabs(no.upper)));
      }
      return {K::at_most, std::max(yes.upper, no.upper), std::max(yes.scale, no.scale), 0, false, {}};
    }
    if (yes.is_finite() && no.is_finite()) {
      need_finite(yes);
      need_finite(no);
      return finite(std::max(yes.log_magnitude(), no.log_magnitude()));
    }
    return {};
  }

  static double bound(const Known& k) {  // factor of `magnitude`
    if (k.is_zero()) return 0;
    return k.kind == Known::Kind::finite ? k.scale : std::fabs(k.upper);
  }

  Known sum(const Known& a, const Known& b, int sign) const {
    using K = Known::Kind;
    if (a.is_zero() && b.is_zero()) return a;
    if (a.is_constant() && b.is_constant()) return Known::constant(a.upper + sign * b.upper);
    // A bound plus a small number, or minus row values.
    const bool left = a.kind == K::at_most && a.upper < 0, right = b.kind == K::at_most && b.upper < 0 && sign > 0;
    if (left || right) {
      const Known &bounded = left ? a : b, &other = left ? b : a;
      Known found = bounded;
      if (other.kind == K::finite && !other.rows.empty()) {
        found.rows.emplace_back(other.rows[0].first, left ? sign : 1);
      } else if (other.is_finite() && std::isfinite(bound(other))) {
        if (found.exact && std::isinf(found.upper)) return found;
        found.scale += bound(other);
      } else {
        return {};
      }
      found.exact = false;
      return found;
    }
    if (!a.is_finite() || !b.is_finite()) return {};
    need_finite(a);
    need_finite(b);
    return finite(std::max(a.log_magnitude(), b.log_magnitude()) + 0.4, bound(a) + bound(b));
  }

  Known product(const Known& a, const Known& b) const {
    using K = Known::Kind;
    if (a.is_zero() || b.is_zero()) {
      const Known& other = a.is_zero() ? b : a;
      if (!other.is_finite()) return {};
      need_finite(other);
      return a.is_zero() ? a : b;
    }
    if (a.is_constant() && b.is_constant()) return Known::constant(a.upper * b.upper);
    const bool scaled = (a.kind == K::at_most && b.is_constant()) || (b.kind == K::at_most && a.is_constant());
    if (scaled) {
      Known found = b.is_constant() ? a : b;
      const double factor = b.is_constant() ? b.upper : a.upper;
      if (factor <= 0 || !found.rows.empty()) return {};
      found.upper *= factor;
      found.scale *= factor;
      return found;
    }
    if (!a.is_finite() || !b.is_finite()) return {};
    need_finite(a);
    need_finite(b);
    const bool linear = a.is_constant() || b.is_constant();
    return finite(a.log_magnitude() + b.log_magnitude(), linear ? bound(a) * bound(b) : unbounded);
  }

  Known quotient(int i) {
    const Known &a = arg(i, 0), &b = arg(i, 1);
    if (b.is_constant() && b.upper != 0 && std::isfinite(b.upper)) return product(a, Known::constant(1 / b.upper));
    if (!a.is_zero() || b.kind != Known::Kind::finite || b.rows.empty()) return {};
    bounds_->nonzero.push_back(b.rows[0].first);
    return a;
  }

  Known exponential(int i) {
    const Known& a = arg(i, 0);
    if (a.kind != Known::Kind::at_most) return {};
    // exp of anything smaller rounds to zero, subnormals included.
    const double limit = compute_type(program_[i].dtype) == f64 ? -746 : -104;
    bounds_->checks.push_back({a.upper, a.scale, a.rows, limit});
    return {Known::Kind::zero, 0, 0, 0, false, {}};
  }

  const ElementwiseProgram& program_;
  const ColumnSide& side_;
  const std::vector<int>* anything_ = nullptr;
  std::vector<Known> known_;
  ColumnBounds* bounds_ = nullptr;
};

}  // namespace

bool contributes_nothing(const ElementwiseProgram& program, const ColumnSide& side, const std::vector<int>& results,
                         const std::vector<int>& anything, ColumnBounds& bounds) {
  return Evaluator(program, side).contributes_nothing(results, anything, bounds);
}

std::vector<std::pair<int, bool>> decided_comparisons(const ElementwiseProgram& program, const ColumnSide& side) {
  return Evaluator(program, side).comparisons();
}

}  // namespace lathe
