#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe::ir {

/// Where two tensors of one shape differ most.
struct Difference {
  double largest = 0;   ///< |a - b|; infinite where only one is finite, or integers or truths differ
  std::int64_t at = 0;  ///< the element, in row-major order
};

/// Elements are compared as numbers, whatever the float dtypes; of complex ones the part that differs more. Two NaNs,
/// and equal infinities, do not differ. Tensors of different shapes differ infinitely. Elements that are `skipped`,
/// if any are, do not count.
Difference difference(const HostTensor& a, const HostTensor& b, const std::vector<bool>& skipped = {});

/// How far element i of two tensors of one shape is apart.
double element_difference(const HostTensor& a, const HostTensor& b, std::int64_t i);

/// The largest finite |element|; 0 where there is none.
double largest_magnitude(const HostTensor& tensor);

/// "[0, 2]: 0.25 against 0.5": the element `at` of both.
std::string describe(const Difference& difference, const HostTensor& a, const HostTensor& b);

}  // namespace lathe::ir
