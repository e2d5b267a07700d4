#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// Returns, by value, whether it is pure, computed by a statement, and used once, in the block that computes it. Such
/// a value can be emitted at its use.
std::vector<bool> used_once(const kernel::Kernel& kernel);

/// Returns, by variable, whether an intrinsic adds to it later than where it is executed.
std::vector<bool> summed_later(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
