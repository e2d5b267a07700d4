#pragma once

#include "passes/gpu/chunks.h"
#include "passes/gpu/gemm/mma/mma_tiles.h"
#include "passes/gpu/gemm/product_parts.h"

namespace lathe::gpu {

/// What the products by tensor cores have in common: operands that are copied to shared memory 16 bytes at a time,
/// and what becomes of the sums that a warp holds.
class TensorParts {
 public:
  static constexpr int chunk = copied_chunk;
  static constexpr int pad = 8;  ///< of rows in shared memory, so that neighbours of a column lie in other banks

  TensorParts(const LoweringContext& lowering, const Region& region) : product(lowering, region) {}

  /// Whether chunks along the operand's axis, from multiples of their length on, lie in memory as they are used, at
  /// multiples of 16 bytes: then they can be copied.
  bool copies(const ProductParts::Side& side) const;
  /// Starts to copy a chunk along the operand's axis, from (row, k) on, to its place in shared memory; zeros beyond
  /// the ends. It is one of a tile of `rows` by `depth`.
  void copy(const ProductParts::Side& side, kernel::Value batch, kernel::Value row, kernel::Value k,
            kernel::Value offset, int rows, int depth);

  /// Stores what a thread holds of a warp's sums, which have `columns` columns; the first one is to lie at `first`,
  /// in rows of `stride` elements.
  void store_sums(kernel::Buffer to, kernel::Value first, std::int64_t stride, int columns, kernel::Value lane,
                  kernel::Value sums);
  /// The tile's rounded sums, in shared memory, go through the epilogue; for thread t of as many as the tile has.
  void finish(const ProductParts::Position& at, kernel::Buffer sums, const TensorTile& tile, kernel::Value t);
  static int stride(const TensorTile& tile) { return tile.columns + pad; }  ///< of the sums in shared memory

  ProductParts product;

 private:
  kernel::Value inside(const ProductParts::Side& side, kernel::Value row, kernel::Value k, int rows, int depth);
};

}  // namespace lathe::gpu
