#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/check/expected_values.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::fuzz {

/// The interpreter's outcome for a case with some sizes: the values of its results, or the label of its error.
/// passes/check/expected_values.h defines the tolerance. For a scaled case with an overflow in an intermediate value
/// only the label counts, because the rest depends on the order of sums, and a tanh may hide it.
class Reference {
 public:
  /// For the outputs and updates of the case. With `round`, values are rounded to their dtypes as in compiled code;
  /// without it, passes are compared.
  Reference(const Case& from, const DimBindings& dims, bool round);
  /// For these values, rounded.
  Reference(const Case& from, const DimBindings& dims, const std::vector<ir::Output>& results, bool round = true);

  const DimBindings& dims() const { return dims_; }
  const Tensors& arguments() const { return arguments_; }
  bool ends_with_error() const { return !label_.empty(); }
  /// Returns what is wrong with these results; nothing if they are correct.
  std::optional<std::string> complaint(const test::Outcome& found);
  /// The same for a run that returns only some of them.
  std::optional<std::string> complaint(const test::Outcome& found, const std::vector<std::string>& names);

 private:
  std::optional<std::string> complaint(const std::string& name, const Tensors& found);

  DimBindings dims_;
  Tensors arguments_;
  std::vector<std::string> names_;
  std::string label_;
  std::optional<ir::ExpectedValues> expected_;  ///< unless the case ends with an error, or values do not count
};

}  // namespace lathe::fuzz
