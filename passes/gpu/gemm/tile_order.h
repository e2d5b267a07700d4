#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "ir/kernel/build/builder.h"

/// The order in which a launch processes the tiles of a matmul's result: in bands of a few rows of tiles, column by
/// column in each, so that tiles that run at the same time share operands in L2.
namespace lathe::gpu {

/// A result in tiles; an unknown number of tiles counts as many.
struct TileGrid {
  int rows, columns;  ///< of a tile
  std::optional<std::int64_t> down, across;
};

/// Returns the elements' rows and columns of the operands that `wave` tiles read together, the average over the
/// launch's waves. This is what comes from DRAM if L2 keeps the operands for one wave, per element of the sum.
double read_per_wave(const TileGrid& grid, int band_rows, int wave);
/// Returns the number of rows of tiles per band that reads least, or hardly more. The order of tiles does not change
/// bits.
int rows_per_band(const TileGrid& grid, int wave);

/// Returns the row and the column of tile number `i` of a result of `down` x `across` tiles.
std::pair<kernel::Value, kernel::Value> tile_in_bands(kernel::Value i, kernel::Value down, kernel::Value across,
                                                      int band_rows);

}  // namespace lathe::gpu
