#pragma once

#include <cstdint>

namespace lathe {

/// Block sizes and thresholds of GPU matmuls; the same for all entries, not tuned for each.
struct GpuProductSizes {
  int plain_side = 16;   ///< threads along each side of a block without tensor cores: 256 in total
  int plain_depth = 16;  ///< k per step in shared memory, without tensor cores
  int mma_depth = 32;    ///< k per stage of mma matmuls
  int mma_stages = 4;    ///< stages in shared memory: one is multiplied while the others are loaded
  int wgmma_stages = 6;  ///< maximum stages of wgmma matmuls
  int attention_stages = 4, least_attention_stages = 2;  ///< maximum and minimum stages of wgmma attentions
  int attention_steps = 64;  ///< maximum elements of the reduced dim copied per stage in mma attentions
  std::int64_t attention_slot_bytes = 5 << 10;  ///< maximum slot bytes: a block with head size 64 has eight slots
  int band_rows = 8;  ///< tiles per band; consecutive blocks traverse a band column by column, so that L2 keeps it
  std::int64_t copied_rows = 128;  ///< an operand read by more rows than this is stored in a copyable layout first
  std::int64_t unpadded_depth = 256, padded_rows = 64;  ///< more k, and this many rows, amortize padding an odd k
  std::int64_t padded_columns_rows = 512;               ///< this many rows make padding odd result columns pay off
  int few_rows = 8;                       ///< maximum result rows of GEMV, which reads the other operand in place
  int few_rows_threads = 1024;            ///< threads per multiprocessor of that kernel, if the sums are long enough
  std::int64_t late_size = 16384;         ///< assumed value of a size that is bound late, without tensor cores
  std::int64_t late_tensor_size = 32768;  ///< same with tensor cores
  std::int64_t least_split = 1024;        ///< minimum length of a split of an f32 sum
  double small_tile_time = 1.3;           ///< relative time per product of 64 x 64 f32 tiles: they load twice as much
  bool operator==(const GpuProductSizes&) const = default;
};

}  // namespace lathe
