#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"
#include "passes/check/difference.h"

namespace lathe::ir {

/// How near a computed value comes to the expected one, in absolute differences of elements.
struct Nearness {
  Difference difference;       ///< of the elements that have a tolerance
  double allowed = 0;          ///< always finite
  double largest = 0;          ///< the largest magnitude of the expected value
  std::int64_t undecided = 0;  ///< elements without a tolerance, because roundings alone move them without bound
  bool none_decided = false;   ///< no element has one
  bool near() const { return difference.largest <= allowed; }
};

struct ExpectOptions {
  /// With `round` values are rounded to their dtypes, as compiled code rounds them; without, ways of computing in f64
  /// are compared.
  InterpretOptions interpret = {};
  /// Where it is given, an element may differ by this much of the value's largest magnitude, whatever roundings do.
  std::optional<double> tolerance = {};
  /// Passes that the values may have gone through, by which roundings move them too. What these passes mean is for
  /// others to check: only what noise does to their result counts, not the result.
  std::function<Graph(const Graph&)> rewrite = {};
};

/// What the interpreter says some values of a graph are, and how near to that any other way of computing them must
/// come: an element may differ by
///
///   base * (the largest magnitude in the value) + multiple * spread
///
/// where base is what a few roundings in the value's dtype amount to, and spread is how far roundings alone move the
/// value: the most that it differs when intermediate roundings are left out, or when noise of a few units in the last
/// place is added to what each op computes (Monte Carlo arithmetic; Parker 1997), in the graph or in what passes make
/// of it. A sum whose terms cancel, whose true value may be zero, so says itself what error it has. An element that
/// roundings make or unmake a NaN or an infinity, or that is an integer or a truth and that they move, is undecided:
/// it has no tolerance, and the others are compared without it. The spread is only computed for values that are not
/// near without it.
class ExpectedValues {
 public:
  /// Throws what interpret_values throws.
  ExpectedValues(const Graph& graph, Tensors arguments, std::vector<ValueId> values,
                 const ExpectOptions& options = {});

  std::size_t size() const { return given_.values.size(); }
  const HostTensor& operator[](std::size_t i) const { return given_.expected[i]; }
  Nearness compare(std::size_t i, const HostTensor& found);

 private:
  double base(std::size_t i) const;
  /// How far roundings move a value: its elements by finite differences, and those that they move without bound.
  struct Spread {
    double largest = 0;
    std::vector<bool> undecided;  ///< empty: none
  };
  const std::vector<Spread>& spreads(int sample);
  /// A way to the values: a graph, where they are in it, and what they are.
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
