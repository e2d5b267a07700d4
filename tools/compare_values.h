#pragma once

#include <string>

#include "ir/support/host_tensor.h"

namespace lathe::tools {

/// How far two tensors of one shape are apart.
struct Distance {
  double error = 0;   ///< |got - wanted| / |wanted| in the Euclidean norm; infinite where NaNs or infinities differ
  std::string worst;  ///< the element that differs most: "[0, 2]: 0.25 against 0.5"
};
Distance distance(const HostTensor& got, const HostTensor& wanted);

/// The error that compiled code of this dtype may have.
double default_tolerance(DType dtype);

}  // namespace lathe::tools
