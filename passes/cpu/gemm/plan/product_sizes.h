#pragma once

#include <cstdint>

namespace lathe::cpu {

/// Block of a matmul task: k, result rows and result columns per step. Counts elements of 4 bytes; with 8 bytes,
/// depth and columns are halved.
struct ProductBlock {
  int depth, rows, columns;
  bool operator==(const ProductBlock&) const = default;
};

/// Blocks of fma matmuls, by which operands are packed and by whom. Those for a right operand that is already packed
/// suit a Skylake-SP (AVX-512, 1 MiB of L2 per core), where depths of 256 to 512 are equally fast.
struct FmaBlocks {
  ProductBlock usual{512, 192, 96};
  ProductBlock packs_both{128, 160, 192};  ///< the task packs both operands; same depth for 8 bytes
  ProductBlock few_kept{2048, 96, 96};     ///< the same for few rows, with a right operand that comes from memory
  ProductBlock packs_left{384, 96, 384};   ///< the task packs the left operand; the right one is already packed
  /// The task packs the right operand for all its rows; one register tile of columns. Depths for: many rows, with a
  /// right operand that is small or contiguous along k; the same with a left operand contiguous along its rows; few
  /// rows.
  int packs_right_depth = 768, beside_rows_depth = 512, small_m_depth = 256;
  int packs_right_rows = 1024, waiting_rows = 336;  ///< rows: many; and few, with sums kept between blocks of k
  /// The right operand is packed and the left one is read in place: along k, or along its rows.
  int packed_depth = 1024, packed_beside_rows_depth = 512, packed_rows = 1024;
  int direct_depth = 1024;  ///< right operand of few columns, read in place
  int again_depth = 256;    ///< right operand that several row blocks of few rows read in turn
  int once_columns = 256;   ///< right operand that they read once
  int streamed_depth = 16;  ///< right operand that a GEMV streams from memory, a few of its rows at a time
  /// Prefetched right operand, for up to 16 rows and for more.
  int prefetched_depth = 32, prefetched_rows_depth = 64, prefetched_columns = 384;
  int dots_depth = 1024, dots_columns = 64, wide_dots_columns = 96;  ///< dot products; the last one for long results
  int wide_tile_registers = 32;  ///< minimum vector registers for register tiles four vectors wide
  int most_column_rows = 12;     ///< maximum rows of a tile as wide as few columns: a broadcast per row and step
  int most_kept_rows = 16;       ///< maximum rows of a tile one vector wide that reads a kept operand from memory
  int streams = 6;               ///< adjacent vectors of a streamed row: the prefetcher follows no more
  int prefetched_steps = 8;      ///< prefetch distance of a register tile, in steps of k
  /// Time to start a task, as the number of rows that are multiplied meanwhile: without packing, if the task packs
  /// its part of the right operand, and if it also computes that, such as the windows of a convolution. On an EPYC
  /// (Zen 4), transposing a block takes as long as 6 rows; it also waits for memory.
  int start_rows = 2, packing_rows = 16, computing_rows = 128;
  bool operator==(const FmaBlocks&) const = default;
};

/// Blocks of tile_mma matmuls. k counts VNNI pairs, each the size of an f32.
struct TileBlocks {
  ProductBlock packs_right{256, 512, 64};               ///< the task packs the right operand, for all its rows
  ProductBlock packs_right_rows{64, 256, 192};          ///< same for a right operand contiguous along its rows
  ProductBlock packs_left{256, 64, 768};                ///< the task packs the left operand, for all its columns
  ProductBlock split_left{64, 64, 768};                 ///< split bf16: the task packs the left operand
  ProductBlock split_packed{384, 480, 128};             ///< both are packed; the right block takes a third of L2
  ProductBlock split_one_block{512, 1024, 128};         ///< same if k is one block
  int split_few_columns_rows = 512;                     ///< its rows if the columns give few tasks
  ProductBlock split_right{192, 256, 64};               ///< the task packs the right operand; its rows stay in L2
  int split_right_depth = 512, split_right_rows = 384;  ///< same if k is one block
  int split_batched_depth = 64, waiting_depth = 48;     ///< per-batch right operand; same with sums between k blocks
  int split_batched_side = 128, short_side = 256;       ///< same: rows and columns, and those for a short k
  ProductBlock least_halved{64, 256, 256};              ///< lower bounds of the first halving if scratch is too small
  bool operator==(const TileBlocks&) const = default;
};

/// Thresholds of matmul plans, in elements: rows, columns and k. scattered_rows is from GPT-2 steps; the origin of
/// the others is not recorded.
struct ProductLimits {
  // By fma.
  std::int64_t small_m = 128;            ///< maximum rows too few to amortize packed row blocks read from L2
  std::int64_t cached_rows = 512;        ///< maximum rows for which a right operand in L2 is not packed
  std::int64_t packed_rows = 2048;       ///< minimum rows that amortize a packed copy through memory
  std::int64_t computed_columns = 256;   ///< more columns amortize a packed copy of a computed left operand
  std::int64_t distant_columns = 256;    ///< more columns, and as much k, amortize a copy of a distant left operand
  std::int64_t scattered_columns = 96;   ///< more columns amortize a copy of a left operand with short runs,
  std::int64_t scattered_least = 64;     ///< of at least that many rows, and as much k
  std::int64_t direct_columns = 64;      ///< maximum columns of a batch's right operand that is read in place
  std::int64_t dots_depth = 256;         ///< minimum k for which dot products amortize the sum over lanes
  std::int64_t dots_rows = 32;           ///< maximum rows of dot products with at least dots_depth k
  std::int64_t short_dots_rows = 8;      ///< maximum rows of dot products with smaller k
  std::int64_t gemv_rows = 4;            ///< maximum rows for which a right operand is streamed from memory
  std::int64_t few_kept_rows = 64;       ///< maximum rows for which a kept right operand comes from memory
  std::int64_t prefetched_small_m = 16;  ///< maximum rows for which few k are prefetched at a time
  std::int64_t narrow_columns = 128;     ///< maximum columns of a right operand of depth narrow_depth, or one in L2
  std::int64_t narrow_depth = 512;
  std::int64_t wide_columns = 2048;       ///< minimum columns of a long result of dot products
  std::int64_t register_depth = 512;      ///< maximum k for which a small epilogue takes results from registers
  std::int64_t epilogue_depth = 32;       ///< maximum k for which a long epilogue takes most of the time
  std::int64_t overlap_depth = 128;       ///< minimum k whose computation hides the memory latency of an epilogue
  std::int64_t least_split = 32768;       ///< minimum right-operand elements per task of split k
  std::int64_t most_packed_left = 16384;  ///< maximum rows, or k, for which packing a computed left operand pays off
  std::int64_t scattered_rows = 4096;     ///< minimum rows for which a left operand read along them leaves the caches
  std::int64_t remainder_vectors = 12;    ///< maximum column vectors for which the remainder is summed separately
  // By tile_mma.
  std::int64_t packed_left_rows = 256;    ///< maximum rows of a row-contiguous left operand to pack beforehand
  std::int64_t packed_right_rows = 512;   ///< minimum rows for which a packed right operand pays off
  std::int64_t packed_right_l2s = 32;     ///< maximum row-contiguous right operand packed for fewer rows, in L2 sizes
  std::int64_t one_block = 1024;          ///< maximum k that split bf16 processes in one block
  std::int64_t split_task_rows = 384;     ///< maximum rows for which each task packs the right operand
  std::int64_t split_columns = 1000;      ///< more columns give many tasks
  std::int64_t most_packed_split = 8192;  ///< maximum rows, columns or k of an operand packed whole as split bf16
  std::int64_t most_panel = 4096;         ///< maximum k of a K panel of split bf16
  std::int64_t split_rows = 96, split_columns_depth = 64;  ///< fewer do not amortize splitting
  std::int64_t split_unknown_rows = 768;                   ///< the same if the rows are known only at run time
  std::int64_t split_fixed_rows = 96;   ///< the same with parameters that are not updated, which may be packed once
  std::int64_t split_percent = 70;      ///< minimum share of whole tiles that the sizes fill; otherwise fma is faster
  std::int64_t split_long_depth = 512;  ///< batched matmuls; see plan_batched
  bool operator==(const ProductLimits&) const = default;
};

/// Step sizes of a task that packs an operand beforehand.
struct PackingSizes {
  int rows = 1536, steps = 16;  ///< operand read along its rows: this many rows and steps of k at a time
  int tiled_depth = 512;        ///< steps of k of row blocks for tile_mma
  bool operator==(const PackingSizes&) const = default;
};

/// Sizes that matmul plans start from or compare with.
struct ProductSizes {
  FmaBlocks fma = {};
  TileBlocks tiles = {};
  ProductLimits limits = {};
  PackingSizes packing = {};
  std::int64_t prefetch_bytes = 8192;  ///< prefetch distance of single-stream dot products
  bool operator==(const ProductSizes&) const = default;
};

}  // namespace lathe::cpu
