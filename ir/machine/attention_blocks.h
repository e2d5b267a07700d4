#pragma once

#include <cstdint>

namespace lathe {

/// What tasks of a fused attention go through at a time, on a CPU. What they were found on is not recorded; no entry
/// of a CPU has been measured apart.
struct AttentionBlocks {
  std::int64_t few_rows = 8;  ///< at most, that are computed side by side without being packed
  int part_columns = 64;      ///< parts of the columns of few rows are multiples of so many
  int few_rows_columns = 64;  ///< whose products with few rows stay in L1 while a part of their depth is summed
  int row_blocks = 4;         ///< of a task
  int tiled_row_blocks = 16;  ///< of a task by tiles, at most: packing all columns takes little of its time then
  int summed_columns = 512;   ///< that sums over columns go through at once
  int packed_columns = 128;   ///< that sums over columns by tiles pack at once
  bool operator==(const AttentionBlocks&) const = default;
};

}  // namespace lathe
