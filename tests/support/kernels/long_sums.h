#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"

/// Every way in which a graph sums n terms, with results computed independently in f64.
namespace lathe::test {

struct LongSum {
  using Numbers = std::vector<double>;

  std::string name;
  std::vector<std::int64_t> dims;  ///< shape of input x, in which 0 means n
  std::string body;                ///< ops that compute %y from %x, in f32, and from %i: i64[n], whose elements are 1
  std::function<Numbers(const Numbers& x)> expected;  ///< elements of %y
  double tolerance = 1e-6;

  /// Returns the graph for an x of this dtype.
  ir::Graph graph(DType dtype) const;
  Tensors arguments(DType dtype, std::int64_t n, const std::function<double(std::int64_t)>& term) const;
  /// Returns the largest relative error of an element.
  double error_of(const Tensors& results, const Tensors& arguments) const;
};

const std::vector<LongSum>& long_sums();
/// Returns products with one or two result rows.
const std::vector<LongSum>& long_gemvs();

}  // namespace lathe::test
