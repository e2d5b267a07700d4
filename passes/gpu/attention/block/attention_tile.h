#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::gpu {

/// How a thread block shares a tile of an attention's scores: 16 x 16 threads, each with `own` adjacent rows and as
/// many adjacent columns. The dim that a matmul sums over goes through shared memory some steps at a time.
struct AttentionTile {
  static constexpr int side = 16, threads = side * side;
  DType compute = f32;
  DType held = f32;  ///< in shared memory: bf16 or f16 with tensor cores, otherwise `compute`

  bool tensor_cores() const { return held != compute; }
  int own() const { return compute == f64 ? 2 : 4; }
  int span() const { return side * own(); }  ///< rows, and columns, of a tile
  /// Distance between rows of `width` elements in shared memory, padded against bank conflicts.
  int stride(int width) const { return width + (tensor_cores() ? 8 : own()); }
};

/// A tile: its outer index, its first row and column.
struct ScorePosition {
  kernel::Value outer, row, column;
};

/// A thread's part of a tile of 64 rows that tensor cores compute. A warp has 16 rows and half of the columns; a
/// thread has pairs of adjacent elements: see kernel::accumulator_position.
struct WarpPart {
  WarpPart(kernel::Value slot, int width);
  int pairs() const { return columns / 4; }
  kernel::Value pair_row(kernel::Value pair) const;
  kernel::Value pair_column(kernel::Value pair) const;

  static constexpr int rows = 16;
  int columns;
  kernel::Value row, column, lane;  ///< first row and column of the warp; the thread's number in it
};

/// A thread of the block: its number, its rows (y of 16) and its columns (x of 16).
struct AttentionThread {
  kernel::Value slot, y, x;
};

}  // namespace lathe::gpu
