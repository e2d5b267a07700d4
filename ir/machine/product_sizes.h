#pragma once

#include <cstdint>

namespace lathe {

/// What a task of a product goes through at a time: k, and of its result rows and columns. In elements of 4 bytes;
/// of 8 bytes half as deep and half as wide.
struct ProductBlock {
  int depth, rows, columns;
  bool operator==(const ProductBlock&) const = default;
};

/// Blocks of products by fma, by who packs what. Those where tasks find the right operand packed suit a Skylake-SP
/// (AVX-512, 1 MiB of L2 a core), where a depth of 256 to 512 is as fast.
struct FmaBlocks {
  ProductBlock usual{384, 192, 96};
  ProductBlock packs_both{128, 160, 192};  ///< the task; as deep of 8 bytes
  ProductBlock packs_left{384, 96, 384};   ///< the task, and finds the right operand packed
  /// The task packs the right operand, for all its rows: of many rows, where it is small or read along k; the same
  /// beside a left operand along its rows; of few rows. Columns: a register tile.
  int packs_right_depth = 768, beside_rows_depth = 512, few_rows_depth = 256;
  int packs_right_rows = 1024, waiting_rows = 336;  ///< and of few rows beside sums that wait for more of k
  /// The right operand is packed, the left one read where it lies: along k, along its rows.
  int packed_depth = 1024, packed_beside_rows_depth = 512, packed_rows = 1024;
  int direct_depth = 1024;  ///< of a right operand of few columns that is read where it lies
  int again_depth = 256;    ///< of one that several row blocks of few rows read, one after the other
  int once_columns = 256;   ///< of one that they read once
  int streamed_depth = 16;  ///< of one that very few rows read from memory: a few of its rows at a time
  /// Of one that is prefetched, for up to 16 rows and more of them.
  int prefetched_depth = 32, prefetched_rows_depth = 64, prefetched_columns = 384;
  int dots_depth = 1024, dots_columns = 64, wide_dots_columns = 96;  ///< of dot products; the last of long results
  int wide_tile_registers = 32;  ///< of vectors, from which on a register tile of four of them beside each other pays
  int most_column_rows = 12;     ///< of a register tile as wide as few columns: each row takes a broadcast at a step
  int streams = 6;               ///< vectors of a streamed row beside each other: the prefetcher follows no more
  int prefetched_steps = 8;      ///< of k, from what a register tile reads to what it prefetches
  bool operator==(const FmaBlocks&) const = default;
};

/// Blocks of products by tile_mma. k in pairs, each of the size of an f32.
struct TileBlocks {
  ProductBlock packs_right{256, 512, 64};               ///< the task, for all its rows
  ProductBlock packs_right_rows{64, 256, 192};          ///< the same along the right operand's rows
  ProductBlock packs_left{256, 64, 768};                ///< the task, for all its columns
  ProductBlock split_left{64, 64, 768};                 ///< split bf16: the task packs the left operand
  ProductBlock split_packed{384, 480, 128};             ///< both are packed: a third of L2 is for the right one
  ProductBlock split_one_block{512, 1024, 128};         ///< the same where k is one block
  int split_few_columns_rows = 512;                     ///< of it, where there are columns for few tasks
  ProductBlock split_right{192, 256, 64};               ///< the task packs the right operand, whose rows stay in L2
  int split_right_depth = 512, split_right_rows = 384;  ///< of it, where k is one block
  int split_batched_depth = 64, waiting_depth = 48;     ///< a right operand for each batch; beside sums that wait
  int split_batched_side = 128, short_side = 256;       ///< of it, rows and columns; those of short k
  ProductBlock least_halved{64, 256, 256};              ///< no less, one after the other, where scratch is too small
  bool operator==(const TileBlocks&) const = default;
};

/// From where on something pays, in elements: rows, columns and k of products. scattered_rows comes from steps of
/// GPT-2; what the others were found on is not recorded.
struct ProductLimits {
  // By fma.
  std::int64_t few_rows = 128;            ///< no more do not make up for packed row blocks that come from L2
  std::int64_t cached_rows = 512;         ///< at most, that a right operand in L2 is not packed for
  std::int64_t packed_rows = 2048;        ///< from which on they make up for a packed copy that goes through memory
  std::int64_t computed_columns = 256;    ///< more make up for a packed copy of a computed left operand
  std::int64_t distant_columns = 256;     ///< more, and as much k, make up for a copy of a distant left operand
  std::int64_t direct_columns = 64;       ///< at most, of a batch's right operand that is read where it lies
  std::int64_t dots_depth = 256;          ///< from which on dot products pay for adding up lanes
  std::int64_t dots_rows = 32;            ///< at most, of such dot products
  std::int64_t short_dots_rows = 8;       ///< at most, of those of less k
  std::int64_t very_few_rows = 4;         ///< at most, that a right operand is streamed from memory for
  std::int64_t prefetched_few_rows = 16;  ///< at most, that few of its k at a time are prefetched for
  std::int64_t narrow_columns = 128;      ///< at most, of a right operand of narrow_depth, or one that lies in L2
  std::int64_t narrow_depth = 512;
  std::int64_t wide_columns = 2048;       ///< from which on results of dot products are long
  std::int64_t register_depth = 512;      ///< k at most that a small epilogue takes results out of registers for
  std::int64_t overlap_depth = 128;       ///< k at least in whose time an epilogue's memory answers
  std::int64_t least_split = 32768;       ///< of a right operand, that a task of split k multiplies at least
  std::int64_t most_packed_left = 16384;  ///< rows, or k, of a computed left operand whose packed copy pays
  std::int64_t scattered_rows = 4096;     ///< from which on a left operand that is read along them leaves the caches
  std::int64_t remainder_vectors = 12;    ///< whole vectors of columns at most, beside which the rest is summed apart
  // By tile_mma.
  std::int64_t packed_left_rows = 256;    ///< at most, that are packed beforehand from a left operand along its rows
  std::int64_t packed_right_rows = 512;   ///< from which on a packed right operand pays
  std::int64_t packed_right_l2s = 32;     ///< times L2 at most, that one along its rows has where it pays for fewer
  std::int64_t one_block = 1024;          ///< k at most that split bf16 goes through in one block
  std::int64_t split_task_rows = 384;     ///< rows at most that each task packs the right operand for
  std::int64_t split_columns = 1000;      ///< more are enough for many tasks
  std::int64_t most_packed_split = 8192;  ///< rows, columns or k of an operand that is packed whole as split bf16
  std::int64_t most_panel = 4096;         ///< k of a panel of split bf16
  std::int64_t split_rows = 96, split_columns_depth = 64;  ///< less do not make up for splitting
  std::int64_t split_percent = 70;      ///< of whole tiles that sizes fill; where they fill less, fma is faster
  std::int64_t split_long_depth = 512;  ///< of products by batch, see plan_batched
  bool operator==(const ProductLimits&) const = default;
};

/// What a task goes through that packs an operand beforehand.
struct PackingSizes {
  int rows = 1536, steps = 16;  ///< of one that is read along its rows: so many rows at so many steps of k in turn
  int tiled_depth = 512;        ///< steps of k of row blocks for tile_mma
  bool operator==(const PackingSizes&) const = default;
};

/// Sizes that plans of products start from or compare with. No entry of a CPU has been measured apart.
struct ProductSizes {
  FmaBlocks fma = {};
  TileBlocks tiles = {};
  ProductLimits limits = {};
  PackingSizes packing = {};
  std::int64_t prefetch_bytes = 8192;  ///< prefetch distance of dot products of one stream
  bool operator==(const ProductSizes&) const = default;
};

}  // namespace lathe
