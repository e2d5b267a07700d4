#include <fmt/core.h>

#include "passes/gpu/gemm/product_parts.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Side = ProductParts::Side;
using Position = ProductParts::Position;

namespace {

/// What a block of threads goes through at a time.
struct BlockShape {
  int side;    ///< threads along a tile
  int own;     ///< elements of a vector
  int k_step;  ///< contracted at once

  explicit BlockShape(const GpuInfo& gpu)
      : side(gpu.products.plain_side), own(gpu.vectors.lanes(f32)), k_step(gpu.products.plain_depth) {}
  int threads() const { return side * side; }
  int span() const { return side * own; }  ///< rows and columns of which a thread has neighbours in one vector each
};

/// A block's tile has groups * 64 rows and columns, and each thread four neighbours both ways of every 64. In shared
/// memory it lies [k][row], each k padded against bank conflicts.
class ProductKernel {
 public:
  ProductKernel(const LoweringContext& lowering, const Region& region, int groups)
      : parts_(lowering, region),
        operands_(parts_.operands),
        b_(parts_.builder()),
        shape_(lowering.gpu()),
        groups_(groups),
        tile_(groups_ * shape_.span()),
        stride_(tile_ + shape_.own) {}

  KernelContext::Built run() {
    return parts_.tiles(tile_, tile_, [&](const Position& at) {
      parts_.left.shared = b_.alloc(operands_.compute, stride_ * shape_.k_step, kernel::Space::shared, "left");
      parts_.right.shared = b_.alloc(operands_.compute, stride_ * shape_.k_step, kernel::Space::shared, "right");
      b_.for_loop(
          0, shape_.side, 1,
          [&](Value y) { b_.for_loop(0, shape_.side, 1, [&](Value x) { thread(at, y, x); }, LoopKind::thread_x); },
          LoopKind::thread_y);
    });
  }

 private:
  void thread(const Position& at, Value y, Value x) {
    const kernel::Type type = {operands_.compute, shape_.own};
    const std::vector<kernel::Var> sums = zero_vectors(b_, type, groups_ * groups_ * shape_.own),
                                   left = zero_vectors(b_, type, groups_), right = zero_vectors(b_, type, groups_);
    const Value slot = y * shape_.side + x;
    const auto fetch = [&](Value first_k) {
      bring(parts_.left, at.batch, at.m, first_k, slot, left);
      bring(parts_.right, at.batch, at.n, first_k, slot, right);
    };
    fetch(b_.index(0));
    b_.for_loop(0, parts_.k, shape_.k_step, [&](Value first_k) {
      put(parts_.left, slot, left);
      put(parts_.right, slot, right);
      b_.barrier();
      fetch(first_k + shape_.k_step);  // under way while these are multiplied
      b_.for_loop(0, shape_.k_step, 1, [&](Value k) { multiply(k, x, y, sums); }, LoopKind::unroll);
      b_.barrier();
    });
    finish(at, y, x, sums);
  }

  /// Where chunk g of a thread stands in a tile: each is four elements that are
  /// neighbours in memory.
  struct Chunk {
    Value row, k;
  };
  Chunk chunk_of(const Side& s, Value slot, int g) const {
    const bool along_k = s.along_k();
    const int chunks = (along_k ? shape_.k_step : tile_) / shape_.own;
    const Value number = slot + g * shape_.threads(), along = number % chunks * shape_.own, other = number / chunks;
    return along_k ? Chunk{other, along} : Chunk{along, other};
  }

  /// Loads [first_k, + depth) of a tile's rows; zeros beyond the ends.
  void bring(Side& s, Value batch, Value first_row, Value first_k, Value slot, const std::vector<kernel::Var>& into) {
    for (int g = 0; g < groups_; ++g) {
      const Chunk chunk = chunk_of(s, slot, g);
      parts_.bring(s, batch, first_row + chunk.row, first_k + chunk.k, into[static_cast<std::size_t>(g)]);
    }
  }

  void put(const Side& s, Value slot, const std::vector<kernel::Var>& from) {
    for (int g = 0; g < groups_; ++g) {
      const Chunk chunk = chunk_of(s, slot, g);
      const Value at = chunk.k * stride_ + chunk.row, value = b_.get(from[static_cast<std::size_t>(g)]);
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

  /// The sums go through memory of the thread's own, so that the epilogue's code stands once.
  void finish(const Position& at, Value y, Value x, const std::vector<kernel::Var>& sums) {
    const auto count = static_cast<std::int64_t>(sums.size());
    const kernel::Buffer kept = b_.alloc(operands_.compute, count * shape_.own, kernel::Space::stack, "sums");
    for (std::size_t i = 0; i < sums.size(); ++i)
      b_.store(kept, b_.index(static_cast<std::int64_t>(i) * shape_.own), b_.get(sums[i]));
    b_.for_loop(0, count, 1, [&](Value i) {
      const Value row = i / groups_, m = at.m + row / shape_.own * shape_.span() + y * shape_.own + row % shape_.own;
      const Value n = at.n + i % groups_ * shape_.span() + x * shape_.own;
      const Value sum = b_.load(kept, i * shape_.own, shape_.own);
      parts_.finish(at.batch, m, n, rounded(b_, sum, operands_.dtype));
    });
  }

  ProductParts parts_;
  const ProductOperands& operands_;
  kernel::Builder& b_;
  BlockShape shape_;
  int groups_, tile_, stride_;
};

/// A tile, by its groups of 64 rows and columns.
struct Tiling {
  int groups, rows;
};
std::string to_string(const Tiling& tiling) { return fmt::format("{0} x {0}", tiling.rows); }

/// The default first. Tiles of 128 read each operand half as often as those of 64, where there are rows and columns
/// to fill them, and tiles for half of the multiprocessors.
std::vector<Tiling> tilings(const GpuInfo& gpu, const ProductOperands& operands) {
  const auto m = operands.m.value(), n = operands.n.value();
  const int span = BlockShape(gpu).span();
  const Tiling small{1, span}, wide{2, 2 * span};
  const std::int64_t large = wide.rows;
  if (operands.compute != f32) return {small};
  if ((!m && !n) || m.value_or(large) < large || n.value_or(large) < large) return {small, wide};
  const auto elements = (operands.batch * operands.m * operands.n).value();
  const std::int64_t enough_tiles = gpu.estimated_multiprocessors / 2;
  return elements && *elements < enough_tiles * large * large ? std::vector{small, wide} : std::vector{wide, small};
}

}  // namespace

std::vector<KernelContext::Built> lower_product(const LoweringContext& context, const Region& region) {
  const auto tiles = tilings(context.gpu(), ProductOperands(context, context.graph[region.members[0]]));
  std::vector<KernelContext::Built> built;
  built.push_back(ProductKernel(context, region, tiles[static_cast<std::size_t>(context.candidate)].groups).run());
  name_candidates(context, tiles, built);
  return built;
}

}  // namespace lathe::gpu
