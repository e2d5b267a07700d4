#include "models/import/ops/sizes/dim_functions.h"

#include <limits>

namespace lathe::importing {

namespace {

std::optional<Dim> answer(bool truth) { return Dim(truth ? 1 : 0); }

/// Returns floor(a / b) if b divides all terms of a but the constant; nothing otherwise.
std::optional<Dim> floor_of_terms(const Dim& a, std::int64_t b) {
  std::int64_t constant = 0;
  for (const Dim::Term& term : a.terms()) {
    if (term.monomial.empty())
      constant = term.coefficient;
    else if (term.coefficient % b != 0)
      return std::nullopt;
  }
  const std::int64_t rest = ((constant % b) + b) % b;
  return (a - Dim(rest)).divided_by(b);
}

}  // namespace

std::optional<Dim> quotient(const Dim& a, const Dim& b, bool rounds_down) {
  if (b.is(0)) return std::nullopt;
  if (!a.value() || !b.value()) {
    std::optional<Dim> exact = a.divided_by(b);
    if (exact || b.value().value_or(0) < 1) return exact;
    const Sign sign = sign_of(a);
    const bool is_floor = rounds_down || sign == Sign::positive || sign == Sign::not_negative;
    return is_floor ? floor_of_terms(a, *b.value()) : std::nullopt;
  }
  const std::int64_t x = *a.value(), y = *b.value();
  if (y == -1 && x == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  const bool has_rest = x % y != 0;
  return Dim(x / y - (rounds_down && has_rest && (x < 0) != (y < 0) ? 1 : 0));
}

std::optional<Dim> rounded_up(const Dim& a, std::int64_t b) { return quotient(a + Dim(b - 1), b, true); }

std::optional<Dim> remainder(const Dim& a, const Dim& b) {
  const std::optional<Dim> whole = quotient(a, b, true);
  return whole ? std::optional(a - *whole * b) : std::nullopt;
}

std::optional<Dim> larger(const Dim& a, const Dim& b) {
  switch (sign_of(a - b)) {
    case Sign::zero:
    case Sign::positive:
    case Sign::not_negative: return a;
    case Sign::negative:
    case Sign::not_positive: return b;
    case Sign::unknown: break;
  }
  return std::nullopt;
}

std::optional<Dim> smaller(const Dim& a, const Dim& b) {
  const std::optional<Dim> above = larger(a, b);
  if (!above) return std::nullopt;
  return *above == a ? b : a;
}

std::optional<Dim> is_equal(const Dim& a, const Dim& b) {
  const Sign sign = sign_of(a - b);
  if (sign == Sign::zero) return answer(true);
  return sign == Sign::positive || sign == Sign::negative ? answer(false) : std::nullopt;
}

std::optional<Dim> is_less(const Dim& a, const Dim& b) {
  const Sign sign = sign_of(a - b);
  if (sign == Sign::negative) return answer(true);
  return sign == Sign::zero || sign == Sign::positive || sign == Sign::not_negative ? answer(false) : std::nullopt;
}

std::optional<Dim> negated(const std::optional<Dim>& answer) {
  return answer ? std::optional(Dim(answer->is(0) ? 1 : 0)) : std::nullopt;
}

}  // namespace lathe::importing
