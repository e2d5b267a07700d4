#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ir/tensor/graph.h"

namespace lathe::importing {

/// A whole number: an offset plus multiples of arguments of a graph.
struct AffineValue {
  Dim offset = 0;
  std::map<std::int32_t, std::int64_t> factors = {};  ///< of arguments, by ValueId::index; none is 0
};

/// Returns whether a polynomial has few terms, with coefficients up to 2^31, so that products of two of them fit i64.
bool is_small(const Dim& dim);

/// Finds the values of a graph that are sizes, constants, arguments, and their sums and multiples. Only i64 counts,
/// because its sums do not wrap at the sizes of a run.
class AffineReader {
 public:
  explicit AffineReader(const ir::Graph& graph) : graph_(graph) {}

  /// Returns the number that all elements of a value have; nothing for other values, and for numbers beyond 2^31.
  std::optional<AffineValue> value(ir::ValueId id) { return value(id, 0); }
  /// Returns the number that is above 0 if and only if the elements of a bool value are true: b - a of a < b. Nothing
  /// for other values.
  std::optional<AffineValue> positive_if(ir::ValueId condition);

 private:
  std::optional<AffineValue> value(ir::ValueId id, int depth);
  std::optional<AffineValue> computed(ir::ValueId id, int depth);

  const ir::Graph& graph_;
  std::map<std::int32_t, std::optional<AffineValue>> known_;
};

}  // namespace lathe::importing
