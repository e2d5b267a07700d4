#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/check/expected_values.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/support/compare_tensors.h"

namespace lathe::fuzz {

/// What the interpreter says of a case with some sizes, as passes/check/expected_values.h says how near is near: the
/// values of its results, or the label of the error that it ends with. Of a scaled case with a value that overflows
/// on the way only the label counts: what becomes of the rest depends on the order of sums, and a tanh may hide it.
class Reference {
 public:
  /// Of the outputs and updates of the case. With `round` values are rounded to their dtypes, as compiled code does;
  /// without, passes are compared.
  Reference(const Case& from, const DimBindings& dims, bool round);
  /// Of these values, rounded.
  Reference(const Case& from, const DimBindings& dims, const std::vector<ir::Output>& results, bool round = true);

  const DimBindings& dims() const { return dims_; }
  const Tensors& arguments() const { return arguments_; }
  bool ends_with_error() const { return !label_.empty(); }
  /// What is wrong with these results; nothing where they are right.
  std::optional<std::string> complaint(const test::Outcome& found);
  /// The same of a run that gives some of them.
  std::optional<std::string> complaint(const test::Outcome& found, const std::vector<std::string>& names);

 private:
  std::optional<std::string> complaint(const std::string& name, const Tensors& found);

  DimBindings dims_;
  Tensors arguments_;
  std::vector<std::string> names_;
  std::string label_;
  std::optional<ir::ExpectedValues> expected_;  ///< where the case does not end with an error, and values count
};

}  // namespace lathe::fuzz
