#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// By value: whether it is pure, computed by a statement, and used once, in the very block that computes it: then it
/// can be written where it is used.
std::vector<bool> used_once(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
