#pragma once

#include "ir/kernel/build/divisors.h"

namespace lathe::cuda {

/// Returns the known divisors of a kernel's values.
kernel::Divisors known_divisors(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
