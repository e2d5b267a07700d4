#pragma once

#include <string>

#include "frontend/tensor.h"

namespace lathe {

/// A trained parameter and the gradient that its update sees.
struct NamedGradient {
  std::string name;
  Tensor parameter;
  Tensor gradient;  ///< of the parameter's shape; what a hook replaces
};

}  // namespace lathe
