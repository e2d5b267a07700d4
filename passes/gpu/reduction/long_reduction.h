#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel/build/builder.h"
#include "ir/machine/gpu_info.h"

namespace lathe::gpu {

/// Reductions side by side, each shared by the threads of one block. Where these are too few to read at the speed of
/// memory, each reduction is cut into splits, a block each; what a split gives lies in a buffer of partial results,
/// which further kernels combine in an order that follows from the sizes alone.
struct LongReduction {
  std::optional<std::int64_t> results;  ///< how many are side by side; unknown: many
  std::optional<std::int64_t> length;   ///< elements of each; unknown: many
  std::int64_t bytes = 0;               ///< that are read for an element, in all loops
  double threads = 1;                   ///< that share a whole one
  double split_threads = 1;             ///< that share a split
  int kernels = 1;                      ///< that splits take more
};

/// Into how many splits at most each is cut: as many as end first by an estimate from the sizes alone, 1 where one
/// block is as good. Not measured.
int splits_of(const GpuInfo& gpu, const LongReduction& reduction);

/// A reduction of `n` elements is cut into `count` splits of `length`, `most` at most (1: it is not cut), each but
/// the last a multiple of `least` long where it would be shorter, else of `unit`.
struct Splits {
  kernel::Value length, count;
};
Splits cut(kernel::Builder& b, kernel::Value n, int most, int least, int unit);

}  // namespace lathe::gpu
