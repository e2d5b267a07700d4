#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe::ir {

/// A value as a number times factors.
struct Product {
  double scale = 1;
  std::vector<Value> factors;  ///< a square or a cube is two or three equal factors

  /// Removes the factor and returns true, if there is one.
  bool take(const Value& factor);
};

/// Returns the factors of nested mul, div by numbers, square, and pow by 2 or 3. Factors keep their shapes.
Product product_of(const Value& value);

/// Whether two values are the same.
inline bool same(const Value& a, const Value& b) { return a.id() == b.id(); }

/// Whether a number is `exact`, but for the rounding of constants and of their products in this dtype.
bool is_rounded(double number, double exact, DType dtype);

/// A sum of a value and a number.
struct Shifted {
  Value value;
  double number;
};
/// Returns the value and the number if `value` adds a number to a value.
std::optional<Shifted> shifted(const Value& value);

}  // namespace lathe::ir
