#pragma once

#include <cstdint>

namespace lathe::gpu {

/// Block sizes and thresholds of matmul kernels. The origin of the defaults is not recorded.
struct GpuProductSizes {
  int plain_side = 16;             ///< threads along each side of a block without tensor cores: 256 in total
  int plain_depth = 16;            ///< k per step in shared memory, without tensor cores
  int mma_depth = 32;              ///< k per stage of mma matmuls
  int mma_stages = 4;              ///< stages in shared memory: one is multiplied while the others are loaded
  int wgmma_stages = 6;            ///< maximum stages of wgmma matmuls
  std::int64_t copied_rows = 128;  ///< an operand read by more rows than this is stored in a copyable layout first
  std::int64_t gemv_rows = 8;      ///< maximum result rows of GEMV, which reads the other operand in place
  /// A GEMV computes its left operand itself if the rows have at most this many bytes together; rows of a length that
  /// is bound late, such as attention over a cache, if the result has at most this many columns.
  std::int64_t row_operand_bytes = 64 << 10;
  std::int64_t row_operand_columns = 1024;
  std::int64_t least_split = 1024;  ///< minimum length of a split of an f32 sum
  bool operator==(const GpuProductSizes&) const = default;
};

}  // namespace lathe::gpu
