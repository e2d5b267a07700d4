#pragma once

#include <optional>

#include "models/import/dim_tensor.h"

/// Arithmetic and comparisons of dims; nothing if the result is no polynomial of sizes, or depends on them.
namespace lathe::importing {

/// Returns the quotient, rounded towards 0 or down. Unknown sizes are divided if the divisor divides all of
/// their terms but the constant.
std::optional<Dim> quotient(const Dim& a, const Dim& b, bool rounds_down);
/// Returns a / b for b of 1 or more, rounded up.
std::optional<Dim> rounded_up(const Dim& a, std::int64_t b);
/// Returns a - b * floor(a / b), which has the sign of b.
std::optional<Dim> remainder(const Dim& a, const Dim& b);
std::optional<Dim> larger(const Dim& a, const Dim& b);
std::optional<Dim> smaller(const Dim& a, const Dim& b);

/// Return 1 or 0.
std::optional<Dim> is_equal(const Dim& a, const Dim& b);
std::optional<Dim> is_less(const Dim& a, const Dim& b);
/// Returns the other answer.
std::optional<Dim> negated(const std::optional<Dim>& answer);

}  // namespace lathe::importing
