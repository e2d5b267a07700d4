#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// Returns, by value, whether it is pure, computed by a statement, and used once, in the block that computes it. Such
/// a value can be emitted at its use.
std::vector<bool> used_once(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
