#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

struct TensorSpec {
  DType dtype;
  std::vector<std::int64_t> shape;
};

/// Returns zeroed arrays in one memory block, each aligned to 64 bytes. Many arrays of about a megabyte then fit on
/// huge pages. The block lives as long as any of them. Throws the UserErrors of HostTensor.
std::vector<HostTensor> make_block(const std::vector<TensorSpec>& specs);

}  // namespace lathe
