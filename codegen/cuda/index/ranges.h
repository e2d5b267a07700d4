#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/hardware/gpu_info.h"
#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/kernel.h"

namespace lathe::cuda {

using kernel::Range;

/// Ranges of a kernel's integers over all threads, lanes and buffer contents. Dims are within the given ranges. A
/// launch has as many blocks as its block loops have iterations.
struct Ranges {
  std::vector<Range> values;  ///< i64 values; the full range for others
  std::vector<Range> vars;
  /// By loop index: the range of the loop counter, including its final value and the values in threads beyond the
  /// bound.
  std::vector<Range> counters;
};
Ranges ranges(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const Range> dims);

}  // namespace lathe::cuda
