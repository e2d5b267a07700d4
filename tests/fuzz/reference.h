#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/fuzz/generator.h"
#include "tests/support/compare.h"

namespace lathe::fuzz {

/// What the interpreter says of a case with some sizes, and how near to that any other way of computing it must come.
/// The allowance of a result is a base by the coarsest float dtype of the graph, and a multiple of how far the result
/// moves when intermediate roundings are left out (narrow dtypes) or the arguments change in their last bits (f64):
/// an ill-conditioned graph says so itself. A result whose infinities or NaNs move then is not compared.
/// In scaled cases errors are relative to the largest number of a result, however small that is. There each computed
/// float is moved by a few roundings too, and what is all rounding then is not compared, nor any result where a value
/// overflows on the way.
class Reference {
 public:
  /// With `round` values are rounded to their dtypes, as compiled code does; without, passes are compared.
  Reference(const Case& from, const DimBindings& dims, bool round);

  const ir::Tensors& arguments() const { return arguments_; }
  /// What is wrong with these results; nothing where they are right.
  std::optional<std::string> complaint(const test::Outcome& found) const;
  const test::Outcome& expected() const { return expected_; }
  double allowance(const std::string& result) const { return allowances_.at(result); }

 private:
  ir::Tensors arguments_;
  double least_;  ///< what results are held to be at least, where errors are relative to them
  test::Outcome expected_;
  std::map<std::string, double> allowances_;
};

}  // namespace lathe::fuzz
