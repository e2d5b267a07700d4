#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe::ir {

/// Where two tensors of one shape differ most.
struct Difference {
  double largest = 0;   ///< |a - b|; infinite if only one is finite, or integers or booleans differ
  std::int64_t at = 0;  ///< position of the element, in row-major order
};

/// Compares elements as numbers, whatever the float dtypes; of complex ones, the part that differs more. Two NaNs,
/// and equal infinities, do not differ. Tensors of different shapes differ infinitely. Elements marked in `skipped`,
/// if it is not empty, are ignored.
Difference difference(const HostTensor& a, const HostTensor& b, const std::vector<bool>& skipped = {});

/// Returns how much element i of two tensors of one shape differs.
double element_difference(const HostTensor& a, const HostTensor& b, std::int64_t i);

/// Returns the largest finite |element|, or 0.
double largest_magnitude(const HostTensor& tensor);

/// Returns the element `at` of both, such as "[0, 2]: 0.25 against 0.5".
std::string describe(const Difference& difference, const HostTensor& a, const HostTensor& b);

}  // namespace lathe::ir
