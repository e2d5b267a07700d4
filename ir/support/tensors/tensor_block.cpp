#include "ir/support/tensors/tensor_block.h"

#include <memory>

namespace lathe {

std::vector<HostTensor> make_block(const std::vector<TensorSpec>& specs) {
  constexpr std::int64_t alignment = 64;
  std::vector<std::int64_t> starts;
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : specs) {
    starts.push_back(bytes);
    const std::int64_t size = count_elements(spec.shape) * static_cast<std::int64_t>(size_in_bytes(spec.dtype));
    bytes += (size + alignment - 1) / alignment * alignment;
  }
  const auto block = std::make_shared<HostTensor>(boolean, std::vector{bytes});
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < specs.size(); ++i)
    tensors.push_back(HostTensor::borrow_private(specs[i].dtype, specs[i].shape, block->data() + starts[i], block));
  return tensors;
}

}  // namespace lathe
