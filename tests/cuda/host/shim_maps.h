#pragma once

#include <span>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/driver.h"

namespace lathe::test {

/// What cuTensorMapEncodeTiled does, for tests/cuda/shim: a ShimTensorMap. Throws the driver's error for an invalid
/// value where the tensor breaks one of the rules of its documentation.
cuda::Driver::TensorMap encode_shim_map(const cuda::Driver::Tensor& tensor);

/// The maps of a launch over host memory.
std::vector<cuda::Driver::TensorMap> shim_maps(const kernel::Kernel& kernel,
                                               std::span<const kernel::BoundBuffer> buffers,
                                               std::span<const std::int64_t> dims);

}  // namespace lathe::test
