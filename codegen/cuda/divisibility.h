#pragma once

#include "ir/kernel/build/divisors.h"

namespace lathe::cuda {

/// What the values of a whole kernel are known to be multiples of.
kernel::Divisors known_divisors(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
