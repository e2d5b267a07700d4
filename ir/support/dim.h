#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/containers/shared_box.h"

namespace lathe {

/// Run-time values of named dims.
using DimBindings = std::map<std::string, std::int64_t, std::less<>>;

struct DimDivisor;

/// A size in the IR: an exact multivariate polynomial with integer coefficients over named unknowns. It is kept in
/// normal form, so two dims are equal exactly if their normal forms are. A dim may have a display name: Dim{"d_k",
/// 64} is the number 64 and prints as `d_k=64` in every dump and error. Copies share everything except numbers.
class Dim {
 public:
  /// A product of unknowns sorted by name, such as n_seq^2 * h. Empty for a constant.
  using Monomial = std::vector<std::pair<std::string, int>>;
  struct Term {
    Monomial monomial;
    std::int64_t coefficient;
    bool operator==(const Term&) const = default;
  };

  /// An unnamed number.
  template <std::integral Int>
    requires(!std::same_as<Int, bool>)
  Dim(Int value) : number_(checked(static_cast<std::int64_t>(value))) {}
  /// An unknown, bound at run time: equal names in a graph are the same size.
  explicit Dim(std::string_view name);
  /// A named number.
  Dim(std::string_view name, std::int64_t value);
  /// A derived size with a display name: Dim{"d_model", h * d_k}. An unknown `size` keeps its own normal form.
  Dim(std::string_view name, const Dim& size);

  /// Returns the number, if known.
  std::optional<std::int64_t> value() const { return is_number() ? std::optional(number_) : std::nullopt; }
  /// Returns the number. Throws UserError [dim_unbound] at the caller's line for an unknown size.
  std::int64_t number(const std::source_location& at = std::source_location::current()) const;
  bool is(std::int64_t number) const { return is_number() && number_ == number; }
  /// Returns the display name; empty for a plain number or an unnamed expression. A single unknown is its own name.
  const std::string& name() const;
  /// Returns the normal form: terms sorted by monomial, higher degree first, without zero coefficients. Empty means
  /// 0.
  std::vector<Term> terms() const;
  /// Returns all unknowns of the expression, sorted, without duplicates.
  std::vector<std::string> unknowns() const;
  /// Returns the same size without its display name; a single unknown keeps its name.
  Dim unnamed() const;
  Dim named(std::string_view name) const { return Dim(name, *this); }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Returns a / b, without a display name: d_model / h. Throws UserError [dim_divide] at the caller's line unless b
  /// divides a as in divided_by().
  friend Dim operator/(const Dim& a, const DimDivisor& b);

  /// Returns a / b if b divides a as a polynomial: (B * n_seq * 512) / (n_seq * 64) = B * 8. Otherwise returns
  /// nothing.
  std::optional<Dim> divided_by(const Dim& divisor) const;

  /// Returns whether the sizes are equal for all values of the unknowns. Ignores display names.
  friend bool operator==(const Dim& a, const Dim& b) {
    if (a.is_number() || b.is_number()) return a.is_number() && b.is_number() && a.number_ == b.number_;
    return a.detail_ == b.detail_ || a.detail_->terms == b.detail_->terms;
  }

  /// Returns whether size and display name are equal.
  bool looks_like(const Dim& other) const {
    return (detail_ == other.detail_ && number_ == other.number_) || (*this == other && name() == other.name());
  }

  /// "yes" or "no" if the answer is the same for all bindings, "unknown" if it depends on them.
  enum class Answer { yes, no, unknown };
  Answer equals(const Dim& other) const;

  /// Returns the number under `bindings`. Throws UserError [dim_unbound] for a missing name and [dim_overflow] if the
  /// result exceeds 64 bits.
  std::int64_t evaluate(const DimBindings& bindings) const;

  /// Returns "n_seq", "d_model=512", "2*n_seq + 1", "-1 + n_seq".
  std::string to_string() const;

 private:
  /// Data of dims that are not plain numbers: the terms of an unknown size, and the display name.
  struct Detail {
    std::vector<Term> terms;  ///< empty for a number
    std::string name;
  };
  explicit Dim(SharedBox<const Detail> detail) : detail_(std::move(detail)) {}
  bool is_number() const { return !detail_ || detail_->terms.empty(); }
  static std::int64_t checked(std::int64_t number);
  static Dim from_terms(std::vector<Term> terms);
  static SharedBox<const Detail> make_detail(std::vector<Term> terms, std::string name);

  std::int64_t number_ = 0;  // if the dim is a number
  SharedBox<const Detail> detail_;
};

/// The right operand of Dim / Dim, with the line of the division: operators cannot have default arguments, but
/// conversions can.
struct DimDivisor {
  DimDivisor(const Dim& divisor, const std::source_location& where = std::source_location::current())
      : dim(divisor), at(where) {}
  template <std::integral Int>
  DimDivisor(Int divisor, const std::source_location& where = std::source_location::current())
      : dim(divisor), at(where) {}
  Dim dim;
  std::source_location at;
};

/// Returns whether `text` is a valid dim name: a letter or underscore, then letters, digits, underscores, single
/// dots, @.
bool is_dim_name(std::string_view text);

}  // namespace lathe
