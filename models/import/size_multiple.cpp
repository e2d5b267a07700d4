#include "models/import/size_multiple.h"

#include <numeric>

namespace lathe::importing {

std::optional<NeededMultiple> needed_multiple(const Dim& size, std::int64_t divisor) {
  if (divisor < 2) return std::nullopt;
  for (const Dim::Term& term : size.unnamed().terms())
    if (!term.monomial.empty() && term.coefficient % divisor != 0)
      return NeededMultiple{term.monomial[0].first, divisor / std::gcd(term.coefficient, divisor)};
  return std::nullopt;
}

void throw_size_error(const UserError& error, const std::optional<NeededMultiple>& needed) {
  if (needed) throw SizeMultiple(error, *needed);
  throw UserError(error);
}

}  // namespace lathe::importing
