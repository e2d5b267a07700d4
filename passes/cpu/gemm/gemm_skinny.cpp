#include <algorithm>
#include <functional>
#include <vector>

#include "ir/support/error.h"
#include "passes/cpu/gemm/gemm_dots.h"
#include "passes/cpu/gemm/gemm_strategies.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

namespace {

class SkinnyDot {
 public:
  SkinnyDot(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs, const GemmOperand& rhs,
            const Epilogue& epilogue)
      : b_(b),
        tile_(plan.tile),
        columns_in_turn_(plan.columns_in_turn),
        left_in_l1_(plan.left_in_l1),
        prefetch_bytes_(plan.prefetch_bytes),
        sizes_(sizes),
        lhs_(lhs),
        rhs_(rhs),
        epilogue_(epilogue) {}

  void emit() {
    LATHE_ASSERT(tile_.mc % tile_.mr == 0 && tile_.nc % tile_.nv == 0);
    const Value column_blocks = b_.ceil_div(sizes_.n, tile_.nc), row_blocks = b_.ceil_div(sizes_.m, tile_.mc);
    passes_ = max(b_.ceil_div(sizes_.k, tile_.kc), 1);
    const auto k = b_.constant_value(sizes_.k);
    const auto steps = k ? std::optional((*k + tile_.lanes - 1) / tile_.lanes) : std::nullopt;
    if (!tile_.one_block(steps)) {
      block_ = std::int64_t{tile_.block} * tile_.lanes;
      LATHE_ASSERT(one_pass() || tile_.kc % block_ == 0 || block_ % tile_.kc == 0);
    }
    // The last columns may use taller tiles, up to `lanes` rows past mc.
    const std::int64_t rows = tile_.mc + tile_.lanes;
    b_.parallel_for(0, sizes_.batch * column_blocks * row_blocks, 1, [&](Value index) {
      const Value m0 = index % row_blocks * tile_.mc, remainder = index / row_blocks;
      const Value n0 = remainder % column_blocks * tile_.nc, batch = remainder / column_blocks;
      results_ = b_.alloc(tile_.compute, rows * stride(), kernel::Space::stack, "results");
      totals_ = {results_};
      if (block_ > 0 && tile_.may_compensate(steps))
        totals_.excess = {b_.alloc(tile_.compute, rows * stride(), kernel::Space::stack, "excess"),
                          sizes_.k > tile_.most_plain_steps() * tile_.lanes};
      if (!one_pass() && (block_ == 0 || tile_.kc < block_))
        partial_ = b_.alloc(tile_.compute, rows * tile_.nc * tile_.lanes, kernel::Space::stack, "sums");
      const Block block{batch, m0, min(m0 + tile_.mc, sizes_.m), n0, min(n0 + tile_.nc, sizes_.n)};
      blocks_of_k(block);
      finish(block);
    });
  }

 private:
  bool one_pass() const { return b_.is_constant(passes_, 1); }

  /// A task: rows m0 .. m1 x columns n0 .. n1 of a batch.
  struct Block {
    Value batch, m0, m1, n0, n1;
  };
  /// The sums of rows m .. x columns n .. over k0 .. k0 + kc.
  struct Dots {
    Value m, n, k0;
    bool known_rows = false, known_columns = false;  ///< all of the tile's exist; otherwise the last one is repeated
  };

  /// Elements from one row of the results to the next; stores extend up to a vector past the last column.
  int stride() const { return tile_.nc + tile_.lanes; }
  int vector_bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }

  DotTile tile(int rows, int columns) const {
    return {
        .compute = tile_.compute, .lanes = tile_.lanes, .rows = rows, .columns = columns, .part = part_of_sums(1)};
  }
  /// Returns DotTile::part, or 0 if all of k is known to be one part.
  int part_of_sums(int accumulators) const {
    const auto k = b_.constant_value(sizes_.k);
    return k && *k <= std::int64_t{tile_.part} * accumulators * tile_.lanes ? 0 : tile_.part;
  }

  /// Processes all rows and columns; then the remaining ones of known columns, with taller tiles. A row block's block
  /// of k stays in L1 for all columns. If all rows are in L1, the columns of a tile stay there for all rows instead.
  void blocks_of_k(const Block& block) {
    const auto known = b_.constant_value(sizes_.n);
    const auto left = static_cast<int>(known ? *known % tile_.nv : 0);
    const Value whole = left > 0 ? min(block.n1, sizes_.n - left) : block.n1;
    b_.for_loop(0, passes_, 1, [&](Value pass) {
      const Value k0 = pass * tile_.kc;
      const auto over_columns = [&](const Builder::Body& body) { b_.for_loop(block.n0, whole, tile_.nv, body); };
      if (left_in_l1_) {
        over_columns([&](Value n) {
          row_blocks(block, tile_.mr, [&](Value m, int rows, bool rows_known) {
            dots(block, tile(rows, tile_.nv), {m, n, k0, rows_known, known.has_value()});
          });
        });
      } else {
        row_blocks(block, tile_.mr, [&](Value m, int rows, bool rows_known) {
          over_columns(
              [&](Value n) { dots(block, tile(rows, tile_.nv), {m, n, k0, rows_known, known.has_value()}); });
        });
      }
      if (left == 0) return;
      b_.if_(whole < block.n1, [&] {
        const int step = std::min(std::max(tile_.lanes / left, tile_.mr), tile_.mc);
        row_blocks(block, step, [&](Value m, int rows, bool rows_known) {
          dots(block, tile(rows, left), {m, whole, k0, rows_known, true});
        });
      });
    });
  }

  /// Emits body(m, rows, known) for every `step` rows; `known`: all of them exist.
  void row_blocks(const Block& block, int step, const std::function<void(Value m, int rows, bool known)>& body) {
    const auto known = b_.constant_value(sizes_.m);
    const auto left = static_cast<int>(known ? *known % step : 0);
    b_.for_loop(block.m0, block.m1, step, [&](Value m) {
      if (known && left == 0) return body(m, step, true);
      b_.if_(m + step <= sizes_.m, [&] { body(m, step, true); }, [&] { body(m, left > 0 ? left : step, left > 0); });
    });
  }

  /// Computes one tile over one pass of k and adds up its lanes at the end of each block of sums.
  void dots(const Block& block, const DotTile& tile, const Dots& at) {
    const Value k1 = min(at.k0 + tile_.kc, sizes_.k);
    const bool in_turn = columns_in_turn_ && one_pass();
    const bool scaled = takes_factor(tile.rows * (in_turn ? 1 : tile.columns));
    const auto indices = [&](Value first, Value size, int count, bool known) {
      std::vector<Value> rows;
      for (int i = 0; i < count; ++i) rows.push_back(i == 0 || known ? first + i : min(first + i, size - 1));
      return rows;
    };
    const auto vectors = [&](const LoadOperand& load, const std::vector<Value>& rows) {
      return [this, &load, rows, batch = block.batch](int i, Value k, Value mask) {
        return load(batch, rows[i], k, LaneAxis::k, tile_.lanes, mask);
      };
    };
    const std::vector<Value> columns = indices(at.n, sizes_.n, tile.columns, at.known_columns);
    const DotVector left = vectors(lhs_.load, indices(at.m, sizes_.m, tile.rows, at.known_rows)),
                    right = vectors(scaled ? rhs_.scaled.numbers : rhs_.load, columns);
    DotFactor factor;
    if (scaled)
      factor = {rhs_.scaled.run, [&](int j, Value k) { return rhs_.scaled.factor(block.batch, columns[j], k); }};
    const auto prefetch = in_turn ? prefetch_of(block.batch, columns, scaled) : nullptr;
    if (scaled) factor.prefetch = prefetch;
    const auto prefetched = [&](int j, Value k, Value mask) {
      prefetch(j, k);
      return right(j, k, mask);
    };
    const DotVector& numbers = prefetch && !scaled ? DotVector(prefetched) : right;
    const auto sums = [&](Value lo, Value hi, const DotStart& start) {
      return in_turn ? dots_in_turn(tile, lo, hi, left, numbers, factor)
                     : emit_dot_tile(b_, tile, lo, hi, known_multiple(b_, sizes_.k, tile_.lanes), left, right, start,
                                     factor);
    };
    in_blocks({tile, at.m - block.m0, at.n - block.n0, at.k0, k1}, scaled, sums);
  }

  /// A tile over the pass k0 .. k1; its first row and column in the task.
  struct TilePass {
    const DotTile& tile;
    Value row, column, k0, k1;
  };
  using Sums = std::function<std::vector<Value>(Value lo, Value hi, const DotStart& start)>;

  /// Computes the sums of a pass by sums(lo, hi, start), which may be a part of a block or several blocks.
  void in_blocks(const TilePass& p, bool scaled, const Sums& sums) {
    const auto store = [&](const std::vector<Value>& all) {
      store_dots(b_, p.tile, all, results_, p.row * stride() + p.column, stride());
    };
    const auto add = [&](const std::vector<Value>& all, Value continues) {
      add_dots(b_, p.tile, all, totals_, p.row * stride() + p.column, stride(), continues);
    };
    if (block_ == 0 && one_pass()) return store(sums(p.k0, p.k1, {}));
    if (block_ > 0 && (one_pass() || tile_.kc >= block_)) {
      // A run of a factor is in one block.
      const std::int64_t run = scaled ? rhs_.scaled.run : 1, block = std::max(block_ / run, std::int64_t{1}) * run;
      b_.for_loop(0, max(p.k1 - p.k0, 1), block, [&](Value first) {
        const Value lo = p.k0 + first;
        add(sums(lo, min(lo + block, p.k1), {}), lo > 0);
      });
      return;
    }
    const Value continues = block_ > 0 ? p.k0 % block_ > 0 : p.k0 > 0;
    const std::vector<Value> part = sums(p.k0, p.k1, [&](const std::vector<kernel::Var>& vars) {
      b_.if_(continues, [&] {
        for (std::size_t i = 0; i < vars.size(); ++i)
          b_.set(vars[i], b_.load(partial_, partial(p, i), tile_.lanes, {}, vector_bytes()));
      });
    });
    const Value last = kernel::equal(p.k1, sizes_.k);
    b_.if_(
        block_ > 0 ? last || kernel::equal(p.k1 % block_, 0) : last,
        [&] { block_ > 0 ? add(part, p.k0 >= block_) : store(part); },
        [&] {
          for (std::size_t i = 0; i < part.size(); ++i)
            b_.store(partial_, partial(p, i), part[i], {}, vector_bytes());
        });
  }

  /// Returns where the partial sum of a tile's i-th sum is.
  Value partial(const TilePass& p, std::size_t i) const {
    const int row = static_cast<int>(i) / p.tile.columns, column = static_cast<int>(i) % p.tile.columns;
    return ((p.row + row) * tile_.nc + (p.column + column)) * tile_.lanes;
  }

  /// Whether a tile of `sums` sums multiplies by a factor once per run; the sums of a run need as many registers
  /// again.
  bool takes_factor(int sums) const {
    constexpr int most = 8;
    const std::int64_t run = rhs_.scaled.run;
    return run > 0 && run % tile_.lanes == 0 && (one_pass() || tile_.kc % run == 0) && sums <= most;
  }

  /// Returns the prefetch of a stream, prefetch_bytes_ ahead. A core that computes on the data it reads has too few
  /// outstanding cache lines to keep memory busy. Empty if there is nothing to prefetch.
  std::function<void(int column, Value k)> prefetch_of(Value batch, const std::vector<Value>& columns,
                                                       bool scaled) const {
    if (!rhs_.prefetch_along_k || prefetch_bytes_ == 0) return nullptr;
    const std::int64_t number = scaled ? 1 : static_cast<std::int64_t>(size_in_bytes(tile_.compute)),
                       column = b_.constant_value(sizes_.k).value_or(prefetch_bytes_) * number,
                       distance = std::max<std::int64_t>(prefetch_bytes_ / std::max<std::int64_t>(column, 1), 1);
    return [this, batch, &columns, distance](int j, Value at_k) {
      rhs_.prefetch_along_k(batch, columns[j] + distance, at_k);
    };
  }

  /// Computes the sums of a tile one column at a time.
  std::vector<Value> dots_in_turn(const DotTile& tile, Value k0, Value k1, const DotVector& left,
                                  const DotVector& right, const DotFactor& factor) const {
    constexpr int accumulators = 4;
    DotTile one = tile;
    one.columns = 1;
    for (one.depth = 1; one.depth * 2 * tile.rows <= accumulators;) one.depth *= 2;
    one.part = part_of_sums(one.depth);
    std::vector<Value> sums(static_cast<std::size_t>(tile.rows * tile.columns));
    for (int j = 0; j < tile.columns; ++j) {
      const auto column = [&](int, Value k, Value mask) { return right(j, k, mask); };
      DotFactor own = factor;
      if (factor.run > 0) own.of = [&](int, Value k) { return factor.of(j, k); };
      if (factor.prefetch) own.prefetch = [&](int, Value k) { factor.prefetch(j, k); };
      const auto of_column =
          emit_dot_tile(b_, one, k0, k1, known_multiple(b_, sizes_.k, tile_.lanes), left, column, {}, own);
      for (int i = 0; i < tile.rows; ++i) sums[i * tile.columns + j] = of_column[i];
    }
    return sums;
  }

  void finish(const Block& block) {
    const Value columns = block.n1 - block.n0, even = columns / tile_.lanes * tile_.lanes;
    b_.for_loop(block.m0, block.m1, 1, [&](Value row) {
      const RowEpilogue consume = epilogue_(block.batch, row);
      const auto results = [&](Value first, Value mask) {
        consume(block.n0 + first, tile_.lanes,
                b_.load(results_, (row - block.m0) * stride() + first, tile_.lanes, mask), mask);
      };
      b_.for_loop(0, even, tile_.lanes, [&](Value c) { results(c, {}); });
      if (known_multiple(b_, sizes_.n, tile_.lanes) && tile_.nc % tile_.lanes == 0) return;
      b_.if_(even < columns, [&] { results(even, b_.tail_mask(columns - even, tile_.lanes)); });
    });
  }

  Builder& b_;
  const GemmTile& tile_;
  bool columns_in_turn_;
  bool left_in_l1_;
  std::int64_t prefetch_bytes_;
  const GemmSizes& sizes_;
  const GemmOperand &lhs_, &rhs_;
  const Epilogue& epilogue_;
  Value passes_;
  std::int64_t block_ = 0;  ///< k of a block of sums; 0 if no sum has more than one
  /// partial_: lanes of the sums of a block, or of all k, that further passes continue.
  Buffer results_, partial_;
  DotTotals totals_;  ///< results_ and what additions to them round off
};

}  // namespace

void emit_skinny_dot(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                     const GemmOperand& rhs, const Epilogue& epilogue) {
  SkinnyDot(b, plan, sizes, lhs, rhs, epilogue).emit();
}

}  // namespace lathe::cpu
