#include "passes/gpu/gemm/tile_order.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"

/// The order in which blocks process the tiles of a matmul.
using namespace lathe;
using kernel::Value;

namespace {

using Tile = std::pair<std::int64_t, std::int64_t>;

/// Returns the tiles in order, as a kernel computes them.
std::vector<Tile> order_of(std::int64_t down, std::int64_t across, int band_rows) {
  kernel::Builder b("order");
  const kernel::Buffer rows = b.buffer("rows", i64, kernel::Access::write),
                       columns = b.buffer("columns", i64, kernel::Access::write);
  const Value d = b.dim("down"), a = b.dim("across");
  b.for_loop(0, d * a, 1, [&](Value i) {
    const auto [row, column] = gpu::tile_in_bands(i, d, a, band_rows);
    b.store(rows, i, row);
    b.store(columns, i, column);
  });
  const std::int64_t count = down * across, dims[] = {down, across};
  std::vector<std::int64_t> row(static_cast<std::size_t>(count)), column(row.size());
  const kernel::BoundBuffer buffers[] = {{row.data(), count}, {column.data(), count}};
  kernel::interpret(b.finish(), buffers, dims);
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < row.size(); ++i) tiles.push_back({row[i], column[i]});
  return tiles;
}

/// Rows and columns that a wave reads on average, as gpu::read_per_wave estimates, counted over all tiles.
double counted(const std::vector<Tile>& tiles, int rows, int columns, std::size_t wave) {
  double read = 0;
  for (std::size_t first = 0; first < tiles.size(); first += wave) {
    std::set<std::int64_t> down, across;
    for (std::size_t i = first; i < std::min(first + wave, tiles.size()); ++i)
      down.insert(tiles[i].first), across.insert(tiles[i].second);
    read += static_cast<double>(down.size()) * rows + static_cast<double>(across.size()) * columns;
  }
  return read * static_cast<double>(wave) / static_cast<double>(tiles.size());
}

}  // namespace

TEST_CASE("tile order: each tile is processed once, whatever the sizes") {
  for (const auto& [down, across] : {Tile{1, 1}, {1, 40}, {40, 1}, {16, 32}, {17, 5}, {33, 12}, {3, 3}, {64, 31}})
    for (const int band_rows : {1, 8, 11, 16}) {
      INFO(down << " x " << across << " in bands of " << band_rows);
      const std::vector<Tile> tiles = order_of(down, across, band_rows);
      std::set<Tile> all(tiles.begin(), tiles.end());
      CHECK(all.size() == static_cast<std::size_t>(down * across));
      CHECK(*all.begin() == Tile{0, 0});
      CHECK(*all.rbegin() == Tile{down - 1, across - 1});
    }
}

TEST_CASE("tile order: bands are as high as the tiles of a wave share most rows and columns of the operands") {
  constexpr int wave = 132;
  const auto checks = [&](std::int64_t m, std::int64_t n, int columns, int band_rows) {
    const gpu::TileGrid grid{128, columns, m / 128, n / columns};
    const double least = gpu::read_per_wave(grid, band_rows, wave), plain = gpu::read_per_wave(grid, 1, wave),
                 eight = gpu::read_per_wave(grid, 8, wave);
    INFO(m << " x " << n << " in tiles of 128 x " << columns << ": " << least << " in bands of "
           << gpu::rows_per_band(grid, wave) << ", " << eight << " of 8, " << plain << " row by row");
    CHECK(gpu::rows_per_band(grid, wave) == band_rows);
    CHECK(least <= eight);
    CHECK(least <= plain);
    CHECK(least <= (n == 768 ? 0.93 : 0.91) * eight);
    if (m * n / 128 / columns <= 16 * wave)
      CHECK(counted(order_of(m / 128, n / columns, band_rows), 128, columns, wave) == Approx(least));
  };
  checks(8192, 8192, 256, 16);
  checks(8192, 8192, 128, 11);
  checks(4096, 4096, 256, 16);
  checks(65536, 3072, 256, 22);
  checks(65536, 768, 256, 1);
  CHECK(gpu::rows_per_band({128, 256, std::nullopt, std::nullopt}, wave) == 12);
}
