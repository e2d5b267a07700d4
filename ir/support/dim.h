#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/containers/shared_box.h"

namespace lathe {

/// Run-time values of named dims.
using DimBindings = std::map<std::string, std::int64_t, std::less<>>;

/// A size in the IR: an exact multivariate polynomial with integer coefficients over named unknowns, kept in normal
/// form, so that two dims are equal exactly when their normal forms are. A dim may carry a name for display:
/// Dim{"d_k", 64} is the number 64, and prints as `d_k=64` in every dump and error. Copies share what is not a
/// number.
class Dim {
 public:
  /// A product of unknowns, such as n_seq^2 * h: sorted by name. Empty for a constant.
  using Monomial = std::vector<std::pair<std::string, int>>;
  struct Term {
    Monomial monomial;
    std::int64_t coefficient;
    bool operator==(const Term&) const = default;
  };

  /// A number without a name.
  template <std::integral Int>
  Dim(Int value) : number_(checked(static_cast<std::int64_t>(value))) {}
  /// An unknown, bound at run time: every use of one name in a graph means one size.
  explicit Dim(std::string_view name);
  /// A known number with a name.
  Dim(std::string_view name, std::int64_t value);
  /// A derived size with a name for display: Dim{"d_model", h * d_k}. An unknown `size` keeps its own normal form.
  Dim(std::string_view name, const Dim& size);

  /// The number, where it is known.
  std::optional<std::int64_t> value() const { return is_number() ? std::optional(number_) : std::nullopt; }
  bool is(std::int64_t number) const { return is_number() && number_ == number; }
  /// The display name; empty for a plain number or an unnamed expression. A lone unknown is named by itself.
  const std::string& name() const;
  /// The normal form: sorted by monomial, degree first; no zero coefficients; empty means 0.
  std::vector<Term> terms() const;
  /// Every unknown in the expression, sorted, without repeats.
  std::vector<std::string> unknowns() const;
  /// The same size without its display name; a lone unknown shows itself.
  Dim unnamed() const;
  Dim named(std::string_view name) const { return Dim(name, *this); }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);

  /// a / b where b divides a as a polynomial: (B * n_seq * 512) / (n_seq * 64) = B * 8. Nothing otherwise.
  std::optional<Dim> divided_by(const Dim& divisor) const;

  /// Equal for every value of the unknowns. Names do not count.
  friend bool operator==(const Dim& a, const Dim& b) {
    if (a.is_number() || b.is_number()) return a.is_number() && b.is_number() && a.number_ == b.number_;
    return a.detail_ == b.detail_ || a.detail_->terms == b.detail_->terms;
  }

  /// The same size under the same name.
  bool looks_like(const Dim& other) const {
    return (detail_ == other.detail_ && number_ == other.number_) || (*this == other && name() == other.name());
  }

  /// "yes" for every binding, "no" for every binding, or "unknown" until the dims are bound.
  enum class Answer { yes, no, unknown };
  Answer equals(const Dim& other) const;

  /// The number under `bindings`. Throws UserError [dim_unbound] for a missing name, [dim_overflow] past 64 bits.
  std::int64_t evaluate(const DimBindings& bindings) const;

  /// "n_seq", "d_model=512", "2*n_seq + 1", "-1 + n_seq".
  std::string to_string() const;

 private:
  /// What is not a number: the terms of an unknown size, the name.
  struct Detail {
    std::vector<Term> terms;  ///< empty for a number
    std::string name;
  };
  explicit Dim(SharedBox<const Detail> detail) : detail_(std::move(detail)) {}
  bool is_number() const { return !detail_ || detail_->terms.empty(); }
  static std::int64_t checked(std::int64_t number);
  static Dim from_terms(std::vector<Term> terms);
  static SharedBox<const Detail> make_detail(std::vector<Term> terms, std::string name);

  std::int64_t number_ = 0;  // where it is one
  SharedBox<const Detail> detail_;
};

/// Whether `text` may name a dim: a letter or underscore, then letters, digits, underscores, dots, @.
bool is_dim_name(std::string_view text);

}  // namespace lathe
