#include "passes/transforms/recognize/product.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe::ir {

using canonical::is;
using canonical::number;
using canonical::operand_of;

bool Product::take(const Value& factor) {
  const auto found = std::ranges::find_if(factors, [&](const Value& f) { return same(f, factor); });
  if (found == factors.end()) return false;
  factors.erase(found);
  return true;
}

namespace {

/// Formulas have few factors. A longer product is none of them.
constexpr std::size_t most_factors = 8;

void multiply_by(Product& product, const Value& value) {
  if (product.factors.size() > most_factors) return;
  if (const auto known = number(value)) {
    product.scale *= known->real();
  } else if (is(value, ops::mul)) {
    multiply_by(product, operand_of(value, 0));
    multiply_by(product, operand_of(value, 1));
  } else if (const auto divisor = is(value, ops::div) ? number(operand_of(value, 1)) : std::nullopt) {
    product.scale /= divisor->real();
    multiply_by(product, operand_of(value, 0));
  } else {
    const auto exponent = is(value, ops::pow) ? number(operand_of(value, 1)) : std::nullopt;
    const int times = is(value, ops::square) || exponent == 2.0 ? 2 : exponent == 3.0 ? 3 : 1;
    for (int i = 0; i < times; ++i) product.factors.push_back(times > 1 ? operand_of(value, 0) : value);
  }
}

}  // namespace

Product product_of(const Value& value) {
  Product product;
  multiply_by(product, value);
  return product;
}

bool is_rounded(double number, double exact, DType dtype) {
  const double rounding =
      dtype == f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return std::abs(number - exact) <= 2 * rounding * std::abs(exact);
}

std::optional<Shifted> shifted(const Value& value) {
  if (!is(value, ops::add)) return std::nullopt;
  for (const int i : {0, 1})
    if (const auto known = number(operand_of(value, 1 - i))) return Shifted{operand_of(value, i), known->real()};
  return std::nullopt;
}

}  // namespace lathe::ir
