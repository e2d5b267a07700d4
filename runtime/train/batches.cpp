#include "runtime/train/batches.h"

namespace lathe {

void refer_to(const Tensors& tensors, InputRefs& refs) {
  for (const auto& [name, tensor] : tensors) {
    ConstTensorRef& ref = refs[name];
    ref.dtype = tensor.dtype();
    ref.shape = tensor.shape();
    ref.data = tensor.data();
    ref.strides.clear();
  }
  if (refs.size() != tensors.size())
    std::erase_if(refs, [&](const auto& ref) { return !tensors.contains(ref.first); });
}

}  // namespace lathe
