#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel/kernel.h"
#include "passes/lowering/pool/region_memo.h"

namespace lathe {

/// Results of previous lowerings: distinct kernels, and launches by region. Lowerings of versions of one graph for
/// one machine with the same options may share a pool, so that only the differences are lowered again.
class KernelPool {
 public:
  /// Adds a kernel and returns its index. Kernels with equal canonical text share an index.
  int add(kernel::Kernel kernel);
  const kernel::Kernel& operator[](int index) const { return kernels_[index]; }

  RegionMemo regions;  ///< launches refer to kernels by their index in this pool

 private:
  std::unordered_map<std::string, int> indices_;
  std::vector<kernel::Kernel> kernels_;
};

}  // namespace lathe
