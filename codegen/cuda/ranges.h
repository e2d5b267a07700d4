#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/kernel.h"
#include "ir/machine/gpu_info.h"

namespace lathe::cuda {

using kernel::Range;

/// What the integers of a kernel can be, in every thread and lane, whatever is in its buffers. Dims are in the given
/// ranges, and a launch has as many blocks as its block loops have iterations.
struct Ranges {
  std::vector<Range> values;  ///< of type i64; all others: any
  std::vector<Range> vars;
  /// By value that is the index of a loop: what a variable that steps from its lower bound up to its upper one holds,
  /// the value at which it ends and those of threads beyond the bound with it.
  std::vector<Range> counters;
};
Ranges ranges(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const Range> dims);

}  // namespace lathe::cuda
