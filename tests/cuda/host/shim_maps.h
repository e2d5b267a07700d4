#pragma once

#include <span>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/driver.h"

namespace lathe::test {

/// Emulates cuTensorMapEncodeTiled for tests/cuda/shim; returns a ShimTensorMap. Throws the driver's error for an
/// invalid value if the tensor violates a documented rule.
cuda::Driver::TensorMap encode_shim_map(const cuda::Driver::Tensor& tensor);

/// Returns the maps of a launch over host memory.
std::vector<cuda::Driver::TensorMap> shim_maps(const kernel::Kernel& kernel,
                                               std::span<const kernel::BoundBuffer> buffers,
                                               std::span<const std::int64_t> dims);

}  // namespace lathe::test
