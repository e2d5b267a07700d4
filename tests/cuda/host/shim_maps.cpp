#include "tests/cuda/host/shim_maps.h"

#include "runtime/cuda/device.h"

namespace lathe::test {

std::vector<cuda::Driver::TensorMap> shim_maps(const kernel::Kernel& kernel,
                                               std::span<const kernel::BoundBuffer> buffers,
                                               std::span<const std::int64_t> dims) {
  std::vector<cuda::Driver::Pointer> where;
  for (const kernel::BoundBuffer& buffer : buffers) where.push_back(reinterpret_cast<std::uintptr_t>(buffer.data));
  std::vector<cuda::Driver::TensorMap> maps;
  for (const auto& tensor : cuda::tensors_of(kernel, where, dims))
    maps.push_back(tensor ? encode_shim_map(*tensor) : cuda::Driver::TensorMap{});
  return maps;
}

}  // namespace lathe::test
