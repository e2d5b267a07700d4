#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel/build/builder.h"
#include "passes/gpu/gpu_context.h"

namespace lathe::gpu {

/// Independent reductions, each computed by the threads of one block. If they are too few to read at the speed of
/// memory, each reduction is cut into splits, one block each. The results of splits go to a buffer of partial
/// results, which further kernels combine in an order that depends on the sizes alone.
struct LongReduction {
  std::optional<std::int64_t> results;  ///< number of reductions; unknown: many
  std::optional<std::int64_t> length;   ///< elements of each; unknown: many
  std::int64_t bytes = 0;               ///< read per element, in all loops
  double threads = 1;                   ///< that share a whole reduction
  double split_threads = 1;             ///< that share a split
  int kernels = 1;                      ///< additional kernels with splits
};

/// Returns the maximum number of splits per reduction, by an estimate from the sizes alone; 1 if one block is as
/// fast. Not measured.
int splits_of(const GpuInfo& gpu, const ReductionSizes& sizes, const LongReduction& reduction);

/// The splits of a reduction of `n` elements: `count` splits of `length`, up to `most` (1: not cut). `length` is a
/// multiple of `unit`, or `least` if that is larger.
struct Splits {
  kernel::Value length, count;
};
Splits cut(kernel::Builder& b, kernel::Value n, int most, int least, int unit);

}  // namespace lathe::gpu
