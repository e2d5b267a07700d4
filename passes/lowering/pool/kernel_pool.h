#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel/kernel.h"
#include "passes/lowering/pool/region_memo.h"

namespace lathe {

/// What lowering has made so far: distinct kernels, and by region the launches of them. Lowerings of versions of one
/// graph for one machine with the same options may share it, so that only what differs is made again.
class KernelPool {
 public:
  /// The index of a kernel among the distinct ones: those whose canonical texts differ.
  int add(kernel::Kernel kernel);
  const kernel::Kernel& operator[](int index) const { return kernels_[static_cast<std::size_t>(index)]; }

  RegionMemo regions;  ///< whose launches name kernels by their indices here

 private:
  std::unordered_map<std::string, int> indices_;
  std::vector<kernel::Kernel> kernels_;
};

}  // namespace lathe
