#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

struct TensorSpec {
  DType dtype;
  std::vector<std::int64_t> shape;
};

/// Arrays of zeros that lie side by side in one piece of memory, each at a multiple of 64 bytes: where there are many
/// of a megabyte or so, large pages hold them all. The memory lives as long as one of them. UserErrors of HostTensor.
std::vector<HostTensor> make_block(const std::vector<TensorSpec>& specs);

}  // namespace lathe
