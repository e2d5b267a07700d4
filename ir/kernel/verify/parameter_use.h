#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// What the statements of a kernel do, whatever its parameters are declared as.
struct ParameterUse {
  std::vector<bool> loaded, stored;  ///< by parameter; a prefetch loads nothing
  std::int64_t largest_code = 0;     ///< of a check
};
ParameterUse parameter_use(const Kernel& kernel);

}  // namespace lathe::kernel
