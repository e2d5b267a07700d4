#include "passes/gpu/gemm/tile_order.h"

#include <algorithm>
#include <vector>

namespace lathe::gpu {

using kernel::Value;

namespace {

constexpr std::int64_t many_tiles = 256;
constexpr int most_waves = 16;  // the pattern repeats
constexpr int most_band_rows = 32;

/// The same order as that of tile_in_bands.
std::pair<std::int64_t, std::int64_t> tile_of(std::int64_t i, std::int64_t down, std::int64_t across, int band_rows) {
  const std::int64_t first = i / (across * band_rows) * band_rows,
                     height = std::min<std::int64_t>(down - first, band_rows), in_band = i - first * across;
  return {first + in_band % height, in_band / height};
}

}  // namespace

double read_per_wave(const TileGrid& grid, int band_rows, int wave) {
  const std::int64_t down = grid.down.value_or(many_tiles), across = grid.across.value_or(many_tiles),
                     count = std::min(down * across, std::int64_t{most_waves} * wave);
  std::vector<std::int64_t> row_wave(static_cast<std::size_t>(down), -1),
      column_wave(static_cast<std::size_t>(across), -1);  // the latest that read it
  double read = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [row, column] = tile_of(i, down, across, band_rows);
    const std::int64_t now = i / wave;
    if (std::exchange(row_wave[static_cast<std::size_t>(row)], now) != now) read += grid.rows;
    if (std::exchange(column_wave[static_cast<std::size_t>(column)], now) != now) read += grid.columns;
  }
  return count > 0 ? read * wave / static_cast<double>(count) : 0;
}

int rows_per_band(const TileGrid& grid, int wave) {
  constexpr double about = 1.01;
  std::vector<double> read;
  for (int rows = 1; rows <= most_band_rows; ++rows) read.push_back(read_per_wave(grid, rows, wave));
  const double least = *std::min_element(read.begin(), read.end());
  const auto first = std::find_if(read.begin(), read.end(), [&](double each) { return each <= about * least; });
  return static_cast<int>(first - read.begin()) + 1;
}

std::pair<Value, Value> tile_in_bands(Value i, Value down, Value across, int band_rows) {
  const Value first = i / (across * band_rows) * band_rows;
  const Value height = kernel::min(down - first, i.builder->index(band_rows)), in_band = i - first * across;
  return {first + in_band % height, in_band / height};
}

}  // namespace lathe::gpu
