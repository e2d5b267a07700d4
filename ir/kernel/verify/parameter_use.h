#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// The accesses and checks in a kernel's statements, independent of how its parameters are declared.
struct ParameterUse {
  std::vector<bool> loaded, stored;  ///< by parameter; a prefetch is not a load
  std::vector<int> alignment;        ///< by parameter: bytes that accesses rely on for its start; 1 for an element
  std::int64_t largest_code = 0;     ///< over all checks
};
ParameterUse parameter_use(const Kernel& kernel);

}  // namespace lathe::kernel
