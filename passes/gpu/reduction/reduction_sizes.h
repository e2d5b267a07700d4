#pragma once

#include <cstdint>

namespace lathe::gpu {

/// Sizes of reductions and scatters. The origin of the defaults is not recorded.
struct ReductionSizes {
  int most_splits = 512;  ///< maximum splits of a long reduction; a block of a later kernel combines the results
  /// Positions of a scatter_add that a block sorts in shared memory, 8 bytes each: a power of two. More positions
  /// take longer to sort, but make it faster to find those of a row.
  std::int64_t sorted_positions = 2048;
  /// Minimum bytes of a row that is kept in shared memory between the loops over it. Shorter rows stay in L2:
  /// an H100 has 50 MB for 132 multiprocessors with 8 blocks of 256 threads, that is, 47 KiB per row.
  std::int64_t least_kept_bytes = 48 << 10;
  bool operator==(const ReductionSizes&) const = default;
};

}  // namespace lathe::gpu
