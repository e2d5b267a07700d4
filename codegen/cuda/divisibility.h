#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// By value: a power of two that every lane of an integer value is known to be a multiple of (2^30 for 0; 1 where
/// nothing is known). `row * 768 + i` with i stepping by 4 is a multiple of 4: an access there may take 4 elements at
/// once.
std::vector<std::int64_t> known_divisors(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
