#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// All integers from lo to hi.
struct Range {
  std::int64_t lo = INT64_MIN, hi = INT64_MAX;
  bool operator==(const Range&) const = default;
  bool holds(std::int64_t n) const { return lo <= n && n <= hi; }
  bool fits_32_bits() const { return lo >= INT32_MIN && hi <= INT32_MAX; }
};

/// A range that holds what the operation gives for i64 operands in these ranges: all integers where nothing better is
/// known, or where it may wrap. Comparisons and the like give 0 or 1.
Range range_of(ScalarOp op, std::span<const Range> args);

/// What the integers of a kernel can be, in every thread and lane, whatever is in its buffers. Dims are in the given
/// ranges, and a launch has as many blocks as its block loops have iterations.
struct Ranges {
  std::vector<Range> values;  ///< of type i64; all others: any
  std::vector<Range> vars;
  /// By value that is the index of a loop: what a variable that steps from its lower bound up to its upper one holds,
  /// the value at which it ends and those of threads beyond the bound with it.
  std::vector<Range> counters;
};
Ranges ranges(const kernel::Kernel& kernel, std::span<const Range> dims);

}  // namespace lathe::cuda
