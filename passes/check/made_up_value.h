#pragma once

#include <cstdint>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/interpret/interpreter.h"

namespace lathe::ir {

/// Returns a synthetic value for an argument, which depends only on (seed, name, dims). Floats are uniform: inputs in
/// [-1, 1), matrices scaled by 1/sqrt(fan in), vectors near 1 if they are called weight and near 0 otherwise, states
/// in [0, 0.1), because some are under a root. Integers are valid indices for their uses; booleans are mostly true;
/// integer states are 0.
HostTensor made_up_value(const Graph& graph, ValueId argument, const DimBindings& dims, std::uint64_t seed);

}  // namespace lathe::ir
