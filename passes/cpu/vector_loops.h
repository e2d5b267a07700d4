#pragma once

#include <cstdint>

namespace lathe::cpu {

/// Unrolling, task sizes and prefetch distances of vector loops: reductions, scans, scatters. The origin of the
/// defaults is not recorded.
struct VectorLoops {
  int chains = 4;           ///< accumulators per sum along a row, which shortens the dependency chain; a power of two
  int summed_rows = 4;      ///< rows added to partial results at a time, if a loop has no other results
  int column_vectors = 4;   ///< column vectors that a task sums over all rows
  int scatter_vectors = 4;  ///< column vectors that the updates of a row are summed in at a time
  std::int64_t scatter_task_vectors = 16, scan_task_vectors = 8, update_task_vectors = 16;  ///< maximum per task
  std::int64_t scattered_rows_ahead = 4;  ///< prefetch distance, in updates
  /// Prefetch distances in bytes if the last-level cache is slow: for a flat region, and for adjacent rows.
  std::int64_t ahead_flat = 16384, ahead_in_rows = 8192;
  std::int64_t least_prefetched_row = 1024;  ///< minimum bytes of a row that is prefetched as a whole
  bool operator==(const VectorLoops&) const = default;
};

}  // namespace lathe::cpu
