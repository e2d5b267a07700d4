#pragma once

#include <cstdint>

namespace lathe {

/// What loops over vectors of a CPU keep under way, and what their tasks have: reductions, scans, scatters. What they
/// were found on is not recorded.
struct VectorLoops {
  int chains = 4;           ///< accumulators of one sum along a row, which wait for each other less; a power of two
  int column_vectors = 4;   ///< of columns that a task sums over all rows
  int scatter_vectors = 4;  ///< of columns that updates of a row are summed in side by side
  std::int64_t scatter_task_vectors = 16, scan_task_vectors = 8, update_task_vectors = 16;  ///< of columns, at most
  std::int64_t scattered_rows_ahead = 4;  ///< from the updates that are added to those that are prefetched
  /// Where the last level of caches is slow: bytes from what a loop reads to what it prefetches, of a flat region and
  /// of rows that lie side by side.
  std::int64_t ahead_flat = 16384, ahead_in_rows = 8192;
  std::int64_t least_prefetched_row = 1024;  ///< bytes, of a row that is prefetched as a whole
  bool operator==(const VectorLoops&) const = default;
};

}  // namespace lathe
