#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"
#include "passes/check/difference.h"

namespace lathe::ir {

/// How near a computed value is to the expected one, in absolute differences of elements.
struct Nearness {
  Difference difference;       ///< of the elements that have a tolerance
  double allowed = 0;          ///< always finite
  double largest = 0;          ///< the largest magnitude of the expected value
  std::int64_t undecided = 0;  ///< elements that are not compared, because rounding can change them by any amount
  bool none_decided = false;   ///< no element has a tolerance
  bool near() const { return difference.largest <= allowed; }
};

struct ExpectOptions {
  /// With `round`, values are rounded to their dtypes, as compiled code rounds them; without it, computations in f64
  /// are compared.
  InterpretOptions interpret = {};
  /// If set, an element may differ by this fraction of the value's largest magnitude, whatever rounding does.
  std::optional<double> tolerance = {};
  /// Passes that may have been applied to the values, which therefore move by rounding in other ways. This class does
  /// not check the passes: it uses only the effect of noise on their result.
  std::function<Graph(const Graph&)> rewrite = {};
};

/// Expected values of a graph, from the interpreter, and the tolerance for any other way of computing them. An
/// element may differ by
///
///   base * (the largest magnitude in the value) + multiple * spread
///
/// where base is the error of a few roundings in the value's dtype, and spread is how far rounding alone moves the
/// value. It is the largest difference if intermediate roundings are omitted, or if noise of a few units in the last
/// place is added to the result of each op (Monte Carlo arithmetic; Parker 1997), in the graph or in the result of
/// the passes. A sum whose terms cancel, and whose true value may be zero, therefore determines its own error. An
/// element is undecided if rounding creates or removes a NaN or an infinity there, or if it is an integer or a
/// boolean that rounding changes. It has no tolerance, and the others are compared without it. The spread is only
/// computed for values that are not near without it.
class ExpectedValues {
 public:
  /// Throws the errors of interpret_values.
  ExpectedValues(const Graph& graph, Tensors arguments, std::vector<ValueId> values,
                 const ExpectOptions& options = {});

  std::size_t size() const { return given_.values.size(); }
  const HostTensor& operator[](std::size_t i) const { return given_.expected[i]; }
  Nearness compare(std::size_t i, const HostTensor& found);

 private:
  double base(std::size_t i) const;
  /// How far rounding moves a value: the largest finite difference, and the elements that it moves without bound.
  struct Spread {
    double largest = 0;
    std::vector<bool> undecided;  ///< empty: none
  };
  const std::vector<Spread>& spreads(int sample);
  /// A way to compute the values: a graph, their positions in it, and the results.
  struct Way {
    Graph graph;
    std::vector<ValueId> values;
    std::vector<HostTensor> expected;
  };
  Way rewritten() const;
  std::vector<Spread> spread(const Way& way, const InterpretOptions& options) const;

  Tensors arguments_;
  ExpectOptions options_;
  Way given_;
  std::optional<Way> rewritten_;
  std::vector<std::vector<Spread>> spreads_;  ///< by sample and value
};

}  // namespace lathe::ir
