#include <fmt/core.h>

#include <algorithm>

#include "passes/gpu/gemm/product_parts.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Side = ProductParts::Side;
using Position = ProductParts::Position;

namespace {

constexpr double small_tile_time = 1.3;  // relative time per product of 64 x 64 tiles: they load twice as much

/// What a thread block processes at a time.
struct BlockShape {
  int side;    ///< threads along a tile
  int own;     ///< elements of a vector
  int k_step;  ///< contracted per step

  explicit BlockShape(const GpuContext& lowering)
      : side(lowering.tuned.products.plain_side),
        own(lowering.vectors().lanes(f32)),
        k_step(lowering.tuned.products.plain_depth) {}
  int threads() const { return side * side; }
  /// Rows and columns that the threads cover with one vector each.
  int span() const { return side * own; }
};

/// A block's tile has groups * 64 rows and columns; each thread has four adjacent rows and columns of every 64. In
/// shared memory the tile is [k][row], with each k padded against bank conflicts.
class ProductKernel {
 public:
  ProductKernel(const GpuContext& lowering, const Region& region, int groups, int splits)
      : parts_(lowering, region),
        operands_(parts_.operands),
        b_(parts_.builder()),
        shape_(lowering),
        groups_(groups),
        splits_(splits),
        tile_(groups_ * shape_.span()),
        stride_(tile_ + shape_.own) {}

  std::vector<KernelContext::Built> run(const GpuContext& lowering, const Region& region) {
    std::vector<KernelContext::Built> built;
    if (splits_ == 1) {
      built.push_back(parts_.tiles(tile_, tile_, [&](const Position& at) {
        block([&](Value y, Value x) { finish(at, y, x, multiply_all(at, b_.index(0), parts_.k, y, x)); });
      }));
      return built;
    }
    const ProductParts::Partial partial = parts_.partial(tile_, tile_, splits_);
    built.push_back(parts_.tiles_of_splits(tile_, tile_, partial, [&](const Position& at, Value number) {
      const Value length = b_.round_up(b_.ceil_div(parts_.k, splits_), shape_.k_step), lo = number * length;
      block([&](Value y, Value x) {
        const auto sums = multiply_all(at, lo, kernel::min(lo + length, parts_.k), y, x);
        keep(partial, parts_.first_partial(partial, at, number), y, x, sums);
      });
    }));
    built.push_back(ProductParts(lowering, region).combine(partial));
    return built;
  }

 private:
  void block(const std::function<void(Value y, Value x)>& thread) {
    parts_.left.shared = b_.alloc(operands_.compute, stride_ * shape_.k_step, kernel::Space::shared, "left");
    parts_.right.shared = b_.alloc(operands_.compute, stride_ * shape_.k_step, kernel::Space::shared, "right");
    const auto row = [&](Value y) {
      b_.for_loop(0, shape_.side, 1, [&](Value x) { thread(y, x); }, LoopKind::thread_x);
    };
    b_.for_loop(0, shape_.side, 1, row, LoopKind::thread_y);
  }

  /// Returns the thread's sums over [lo, hi); lo is a multiple of k_step.
  std::vector<kernel::Var> multiply_all(const Position& at, Value lo, Value hi, Value y, Value x) {
    const kernel::Type type = {operands_.compute, shape_.own};
    const std::vector<kernel::Var> sums = zero_vectors(b_, type, groups_ * groups_ * shape_.own),
                                   left = zero_vectors(b_, type, groups_), right = zero_vectors(b_, type, groups_);
    const Value slot = y * shape_.side + x;
    const auto fetch = [&](Value first_k) {
      bring(parts_.left, at.batch, at.m, first_k, slot, left);
      bring(parts_.right, at.batch, at.n, first_k, slot, right);
    };
    fetch(lo);
    b_.for_loop(lo, hi, shape_.k_step, [&](Value first_k) {
      put(parts_.left, slot, left);
      put(parts_.right, slot, right);
      b_.barrier();
      fetch(first_k + shape_.k_step);  // overlaps with the multiplications
      b_.for_loop(0, shape_.k_step, 1, [&](Value k) { multiply(k, x, y, sums); }, LoopKind::unroll);
      b_.barrier();
    });
    return sums;
  }

  /// Position of chunk g of a thread in a tile; a chunk is four elements that are adjacent in memory.
  struct Chunk {
    Value row, k;
  };
  Chunk chunk_of(const Side& s, Value slot, int g) const {
    const bool along_k = s.along_k();
    const int chunks = (along_k ? shape_.k_step : tile_) / shape_.own;
    const Value number = slot + g * shape_.threads(), along = number % chunks * shape_.own, other = number / chunks;
    return along_k ? Chunk{other, along} : Chunk{along, other};
  }

  /// Loads [first_k, first_k + k_step) of a tile's rows; zeros past the ends.
  void bring(Side& s, Value batch, Value first_row, Value first_k, Value slot, const std::vector<kernel::Var>& into) {
    for (int g = 0; g < groups_; ++g) {
      const Chunk chunk = chunk_of(s, slot, g);
      parts_.bring(s, batch, first_row + chunk.row, first_k + chunk.k, into[g]);
    }
  }

  void put(const Side& s, Value slot, const std::vector<kernel::Var>& from) {
    for (int g = 0; g < groups_; ++g) {
      const Chunk chunk = chunk_of(s, slot, g);
      const Value at = chunk.k * stride_ + chunk.row, value = b_.get(from[g]);
      if (s.along_k())
        b_.store_strided(s.shared, at, stride_, value);
      else
        b_.store(s.shared, at, value);
    }
  }

  void multiply(Value k, Value x, Value y, const std::vector<kernel::Var>& sums) {
    std::vector<Value> rows, columns;
    for (int g = 0; g < groups_; ++g) {
      rows.push_back(b_.load(parts_.left.shared, k * stride_ + g * shape_.span() + y * shape_.own, shape_.own));
      columns.push_back(b_.load(parts_.right.shared, k * stride_ + g * shape_.span() + x * shape_.own, shape_.own));
    }
    const std::span<const kernel::Var> all = sums;
    const std::size_t of_group = all.size() / rows.size();
    for (std::size_t g = 0; g < rows.size(); ++g)
      multiply_add(b_, all.subspan(g * of_group, of_group), rows[g], columns);
  }

  /// Returns the position in a tile of number i of a thread's vectors of sums.
  std::pair<Value, Value> corner(Value i, Value y, Value x) const {
    const Value row = i / groups_;
    return {row / shape_.own * shape_.span() + y * shape_.own + row % shape_.own,
            i % groups_ * shape_.span() + x * shape_.own};
  }

  /// Stores the sums of a split, without the epilogue.
  void keep(const ProductParts::Partial& partial, Value first, Value y, Value x,
            const std::vector<kernel::Var>& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto [row, column] = corner(b_.index(static_cast<std::int64_t>(i)), y, x);
      b_.store(parts_.context().buffer(partial.buffer), first + row * partial.columns + column, b_.get(sums[i]));
    }
  }

  /// The sums go through memory of the thread, so that the epilogue's code is emitted once.
  void finish(const Position& at, Value y, Value x, const std::vector<kernel::Var>& sums) {
    const auto count = static_cast<std::int64_t>(sums.size());
    const kernel::Buffer kept = b_.alloc(operands_.compute, count * shape_.own, kernel::Space::stack, "sums");
    for (std::size_t i = 0; i < sums.size(); ++i)
      b_.store(kept, b_.index(static_cast<std::int64_t>(i) * shape_.own), b_.get(sums[i]));
    b_.for_loop(0, count, 1, [&](Value i) {
      const auto [row, column] = corner(i, y, x);
      const Value sum = b_.load(kept, i * shape_.own, shape_.own);
      parts_.finish(at.batch, at.m + row, at.n + column, rounded(b_, sum, operands_.dtype));
    });
  }

  ProductParts parts_;
  const ProductOperands& operands_;
  kernel::Builder& b_;
  BlockShape shape_;
  int groups_, splits_, tile_, stride_;
};

/// A tile, in groups of 64 rows and columns, and the number of splits of the summed dim.
struct Tiling {
  int groups, rows, splits = 1;
};
std::string to_string(const Tiling& tiling) {
  const std::string tile = fmt::format("{0} x {0}", tiling.rows);
  return tiling.splits > 1 ? fmt::format("{}, {} splits", tile, tiling.splits) : tile;
}

/// Returns the tilings, the default first. Tiles of 128 read each operand half as often as tiles of 64. They are the
/// default if there are enough rows and columns to fill them, and tiles for half of the multiprocessors.
std::vector<Tiling> tilings(const GpuContext& lowering, const ProductOperands& operands) {
  const auto m = operands.m.value(), n = operands.n.value();
  const int span = BlockShape(lowering).span();
  const Tiling small{1, span}, wide{2, 2 * span};
  const std::int64_t large = wide.rows;
  if (operands.compute != f32) return {small};
  if ((!m && !n) || m.value_or(large) < large || n.value_or(large) < large) return {small, wide};
  const auto elements = (operands.batch * operands.m * operands.n).value();
  const std::int64_t enough_tiles = estimated_multiprocessors / 2;
  return elements && *elements < enough_tiles * large * large ? std::vector{small, wide} : std::vector{wide, small};
}

/// Returns the tilings with splits, if few tiles have long sums, as for gradients of weights, and if the estimated
/// time is shorter. The estimate assumes one block per multiprocessor at a time; a second
/// kernel costs a launch and the traffic of the splits. A sum of unknown length is treated as long.
std::vector<Tiling> split_tilings(const GpuContext& lowering, const ProductOperands& operands) {
  constexpr int counts[] = {2, 3, 4, 6, 8, 12, 16};
  const GpuInfo& gpu = lowering.gpu;
  const std::int64_t least_split = lowering.tuned.products.least_split;
  std::vector<Tiling> found = tilings(lowering, operands);
  const auto batch = operands.batch.value(), m = operands.m.value(), n = operands.n.value();
  const std::int64_t k = operands.k.value().value_or(late_size);
  if (operands.compute != f32 || operands.dtype != f32 || !batch || !m || !n || k < 2 * least_split) return found;
  const auto tiles_along = [](std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; };
  const auto seconds = [&](const Tiling& tiling) {
    const std::int64_t blocks = *batch * tiles_along(*m, tiling.rows) * tiles_along(*n, tiling.rows) * tiling.splits;
    const double work = 2.0 * tiling.rows * tiling.rows * static_cast<double>(tiles_along(k, tiling.splits)),
                 traffic = tiling.splits > 1 ? 8.0 * tiling.splits * static_cast<double>(*batch * *m * *n) : 0;
    return static_cast<double>(tiles_along(blocks, estimated_multiprocessors)) * work / gpu.fma_flops *
               (tiling.groups == 1 ? small_tile_time : 1) +
           traffic / gpu.bytes_per_second + (tiling.splits > 1 ? gpu.launch_seconds : 0);
  };
  Tiling best = found[0];
  for (const Tiling& tiling : found)
    for (const int splits : counts) {
      const Tiling cut{tiling.groups, tiling.rows, splits};
      if (k / splits >= least_split && seconds(cut) < seconds(best)) best = cut;
    }
  for (Tiling& tiling : found) tiling.splits = best.splits;
  std::stable_sort(found.begin(), found.end(),
                   [&](const Tiling& a, const Tiling& b) { return a.rows == best.rows && b.rows != best.rows; });
  return found;
}

}  // namespace

std::vector<KernelContext::Built> lower_product(const GpuContext& context, const Region& region) {
  const auto tiles = split_tilings(context, ProductOperands(context, context.graph[region.members[0]]));
  const Tiling& tiling = tiles[context.candidate];
  auto built = ProductKernel(context, region, tiling.groups, tiling.splits).run(context, region);
  name_candidates(context, tiles, built);
  return built;
}

}  // namespace lathe::gpu
