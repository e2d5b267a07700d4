#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/along_dim.h"

namespace lathe::gpu {

/// A kernel that goes along a dim in order: one column per thread or, if no dims follow, one row per block, whose
/// threads take one element each, then the next ones.
struct AlongDimKernel {
  /// `along` must outlive the kernel. `reverse`: the last element is the first in order.
  AlongDimKernel(const std::string& name, const AlongDim& along, bool reverse, int result);

  /// Declares the result's buffer and those that the programs read.
  void declare(const std::vector<const ElementwiseProgram*>& programs, const GpuContext& lowering);
  /// Emits the sizes and the loops, and finishes the kernel. Each thread calls column(pre, column); or each thread x
  /// of a block calls the function that row(row) returns.
  KernelContext::Built loops(const std::function<void(kernel::Value, kernel::Value)>& column,
                             const std::function<std::function<void(kernel::Value)>(kernel::Value)>& row);
  /// Calls element(turn, exists) for each element of the row that thread x takes: number x, x + block_threads, ..
  void for_turns(kernel::Value x, const std::function<void(kernel::Value, kernel::Value)>& element);

  /// Returns the position in the row of element number `turn` in order.
  kernel::Value position(kernel::Value turn) const { return reverse ? size - 1 - turn : turn; }
  void store(kernel::Value at, kernel::Value value);

  const AlongDim& along;
  bool reverse;
  int result;
  KernelContext context;
  kernel::Builder& b;
  kernel::Value size = {}, columns = {};
};

}  // namespace lathe::gpu
