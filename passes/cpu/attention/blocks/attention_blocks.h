#pragma once

#include <cstdint>

namespace lathe::cpu {

inline constexpr int score_work = 16;  ///< elementwise cost of an attention score, in multiply-adds; rough

/// Block sizes of fused attention tasks. The defaults' origin is not recorded.
struct AttentionBlocks {
  std::int64_t decode_rows = 8;  ///< maximum number of rows computed together without packing
  int part_columns = 64;         ///< column parts of the few-rows kernel are multiples of this
  int decode_columns = 64;    ///< columns whose products with few rows stay in L1 while part of their depth is summed
  int row_blocks = 4;         ///< row blocks per task
  int tiled_row_blocks = 16;  ///< maximum row blocks per tile_mma task: packing all columns then costs a small share
  int summed_columns = 512;   ///< columns per step of sums over columns
  int packed_columns = 128;   ///< columns that tile_mma sums over columns pack at a time
  bool operator==(const AttentionBlocks&) const = default;
};

}  // namespace lathe::cpu
