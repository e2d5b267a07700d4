#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"

/// Every way in which a graph adds up n terms, and what each comes to in f64 arithmetic of its own.
namespace lathe::test {

struct LongSum {
  using Numbers = std::vector<double>;

  std::string name;
  std::vector<std::int64_t> dims;  ///< of input x; 0: n
  std::string body;                ///< statements that make %y of %x, in f32, and of %i: i64[n], whose elements are 1
  std::function<Numbers(const Numbers& x)> expected;  ///< elements of %y
  double tolerance = 1e-6;

  /// The graph for an x of some dtype.
  ir::Graph graph(DType dtype) const;
  Tensors arguments(DType dtype, std::int64_t n, const std::function<double(std::int64_t)>& term) const;
  /// The largest relative error of an element.
  double error_of(const Tensors& results, const Tensors& arguments) const;
};

const std::vector<LongSum>& long_sums();

}  // namespace lathe::test
