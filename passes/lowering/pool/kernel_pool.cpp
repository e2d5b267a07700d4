#include "passes/lowering/pool/kernel_pool.h"

#include "ir/kernel/printer.h"

namespace lathe {

int KernelPool::add(kernel::Kernel kernel) {
  const auto [known, is_new] =
      indices_.try_emplace(kernel::canonical_text(kernel), static_cast<int>(kernels_.size()));
  if (is_new) kernels_.push_back(std::move(kernel));
  return known->second;
}

}  // namespace lathe
