#pragma once

#include "passes/gpu/chunks.h"
#include "passes/gpu/gemm/mma/mma_tiles.h"
#include "passes/gpu/gemm/product_parts.h"
#include "passes/gpu/gpu_context.h"

namespace lathe::gpu {

/// Code that matmuls on tensor cores share: operands that are copied to shared memory 16 bytes at a time, and the
/// epilogue of the sums that a warp holds.
class TensorParts {
 public:
  static constexpr int chunk = copied_chunk;
  /// Padding of rows in shared memory, so that neighbors in a column are in different banks.
  static constexpr int pad = 8;

  TensorParts(const GpuContext& lowering, const Region& region) : product(lowering, region) {}

  /// Whether the operand can be copied: chunks along its axis, at multiples of their length, are at multiples of 16
  /// bytes in memory and need no computation.
  bool copies(const ProductParts::Side& side) const;
  /// Starts to copy a chunk along the operand's axis, from (row, k) on, to `offset` in shared memory; zeros past the
  /// ends. The chunk belongs to a tile of `rows` by `depth`.
  void copy(const ProductParts::Side& side, kernel::Value batch, kernel::Value row, kernel::Value k,
            kernel::Value offset, int rows, int depth);

  /// Stores a thread's part of a warp's sums, which have `columns` columns. The first sum of the warp goes to
  /// `first`; rows have `stride` elements.
  void store_sums(kernel::Buffer to, kernel::Value first, std::int64_t stride, int columns, kernel::Value lane,
                  kernel::Value sums);
  /// Passes the tile's rounded sums through the epilogue; called by each thread t of the tile. They are in shared
  /// memory from `first` on.
  void finish(const ProductParts::Position& at, kernel::Buffer sums, const TensorTile& tile, kernel::Value t,
              kernel::Builder::Bound first = 0);
  static int stride(const TensorTile& tile) { return tile.columns + pad; }  ///< of the sums in shared memory

  ProductParts product;

 private:
  kernel::Value inside(const ProductParts::Side& side, kernel::Value row, kernel::Value k, int rows, int depth);
};

}  // namespace lathe::gpu
