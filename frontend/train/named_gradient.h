#pragma once

#include <string>

#include "frontend/tensor.h"

namespace lathe {

/// A trained parameter and the gradient that its update sees.
struct NamedGradient {
  std::string name;
  Tensor parameter;
  Tensor gradient;  ///< of the parameter's shape; a hook replaces it
};

}  // namespace lathe
