#include <algorithm>
#include <optional>

#include "ir/hardware/memory_units.h"
#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/support/error.h"
#include "passes/cpu/gemm/gemm_strategies.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"
#include "passes/cpu/gemm/split_bf16_sums.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

namespace {

class TileGemm {
 public:
  TileGemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs, const GemmOperand& rhs,
           const Epilogue& epilogue)
      : b_(b), plan_(plan), tile_(plan.tile), sizes_(sizes), lhs_(lhs), rhs_(rhs), epilogue_(epilogue) {
    LATHE_ASSERT(tile_.tiles() && tile_.mr == 2 * kernel::tile_side && tile_.n_step() == tile_.mr &&
                 tile_.kc % (kernel::tile_depth / 2) == 0);
  }

  void emit() {
    steps_ = steps_of_k(b_, tile_, sizes_.k);
    const Value columns = block_size(b_, sizes_.n, b_.index(tile_.nc), tile_.n_step());
    passes_ = max(b_.ceil_div(steps_, tile_.kc), 1);
    set_blocks();
    const Value most =
        blocks_ ? b_.select(*blocks_, b_.index(rows_with_totals(tile_)), b_.index(tile_.mc)) : b_.index(tile_.mc);
    const Value rows = block_size(b_, sizes_.m, most, tile_.mr);
    for_each_task(b_, sizes_, rows, columns, [&](const GemmTask& t) { task(t); });
  }

 private:
  /// The depth of the last panel is known only when the kernel runs, but none is deeper than the plan's.
  void set_blocks() {
    const bool short_panels = plan_.panel > 0 && one_block_of_tiles(plan_.panel);
    if (short_panels || tile_.one_block(b_.constant_value(steps_))) return;
    LATHE_ASSERT(tile_.block % tile_.kc == 0);
    blocks_ = steps_ > tile_.block;
  }

  void task(const GemmTask& t) {
    const bool single = b_.is_constant(passes_, 1);
    const int rows = single ? tile_.mr : blocks_ ? std::max(tile_.mc, 2 * rows_with_totals(tile_)) : tile_.mc;
    sums_ = b_.alloc(f32, std::int64_t{rows} * tile_.nc, kernel::Space::stack, "sums");
    if (plan_.lhs == Source::loaded)
      left_ = b_.alloc(bf16, tile_.mc * depth(), kernel::Space::stack, "left");
    else if (copies_last_rows())
      left_ = b_.alloc(bf16, tile_.mr * depth(), kernel::Space::stack, "left");
    if (plan_.rhs == Source::loaded) right_ = b_.alloc(bf16, tile_.nc * depth(), kernel::Space::stack, "right");
    if (tile_.split_bf16()) exact_.emplace(b_);
    for_each_pass(b_, steps_, passes_, tile_.kc, [&](const GemmPass& p) { pass(t, p); });
  }

  void pass(const GemmTask& t, const GemmPass& p) {
    if (plan_.rhs == Source::loaded)
      b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
        emit_pack_micro_panel(b_, tile_, source(t, p, n, sizes_.n, tile_.n_step(), rhs_),
                              {.buffer = right_, .base = (n - t.n0) * tile_.kc});
      });
    if (plan_.lhs == Source::loaded)
      b_.for_loop(t.m0, t.m1, tile_.mr, [&](Value m) { pack_left(t, p, m, (m - t.m0) * depth()); });
    b_.for_loop(t.m0, t.m1, tile_.mr, [&](Value m) {
      const Value sums = b_.select(kernel::equal(passes_, 1), b_.index(0), (m - t.m0) * tile_.nc);
      row_block(t, p, m, sums);
      if (!blocks_) return b_.if_(p.last, [&] { finish(t, m, sums); });
      const Value totals = sums + rows_with_totals(tile_) * tile_.nc;
      const Value ends = p.last || kernel::equal((p.k0 + p.depth) % tile_.block, 0);
      b_.if_(*blocks_ && ends, [&] { add_to_totals(t, m, sums, totals, p.k0 >= tile_.block); });
      b_.if_(p.last, [&] { finish(t, m, b_.select(*blocks_, totals, sums)); });
    });
  }

  /// Adds the sums of a finished block of k, of the rows from m on, to their totals. The first block has none.
  void add_to_totals(const GemmTask& t, Value m, Value sums, Value totals, Value continues) {
    const int lanes = tile_.lanes, bytes = lanes * static_cast<int>(size_in_bytes(f32));
    b_.for_loop(0, min(t.m1 - m, tile_.mr), 1, [&](Value row) {
      b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
        with_columns(n, [&](int width) {
          for (int v = 0; v < width; v += lanes) {
            const Value at = row * tile_.nc + (n - t.n0) + v;
            const kernel::Var total = b_.var(b_.load(sums_, sums + at, lanes, {}, bytes));
            b_.if_(continues, [&] { b_.set(total, b_.load(sums_, totals + at, lanes, {}, bytes) + b_.get(total)); });
            b_.store(sums_, totals + at, b_.get(total), {}, bytes);
          }
        });
      });
    });
  }

  static constexpr int elements_of_cache_line = cache_line_bytes / 2;  ///< bf16 elements
  int depth() const { return 2 * tile_.kc * tile_.terms(); }           // elements of a row of k in scratch

  MicroPanelSource source(const GemmTask& t, const GemmPass& p, Value row, Value rows, int width,
                          const GemmOperand& o) const {
    return {t.batch, row, rows, p.k0, p.depth, sizes_.k, width, o.axis, &o.load};
  }

  void pack_left(const GemmTask& t, const GemmPass& p, Value m, Value base) {
    emit_pack_rows(b_, tile_, source(t, p, m, sizes_.m, tile_.mr, lhs_), {left_, base, b_.index(depth())});
  }

  /// Rows that are read in place must not extend past the last one; a row block that would is copied.
  bool copies_last_rows() const {
    return plan_.lhs == Source::direct && !known_multiple(b_, sizes_.m, kernel::tile_side);
  }

  /// Processes rows m .. m + 32 of a task for all its columns. The last row block may have half as many.
  void row_block(const GemmTask& t, const GemmPass& p, Value m, Value sums) {
    const std::optional<Value> next = next_row_block(t, p, m);
    const auto tiles = [&](int rows, const Builder::Rows& left) {
      b_.for_loop(t.n0, t.n1, tile_.n_step(),
                  [&](Value n) { columns(t, p, n, sums + (n - t.n0), rows, left, next); });
    };
    const auto known = b_.constant_value(sizes_.m);
    const int last =
        known && *known % tile_.mr > 0 && *known % tile_.mr <= kernel::tile_side ? kernel::tile_side : tile_.mr;
    const auto short_row_block = [&] {
      if (!copies_last_rows()) return tiles(last, left(t, p, m));
      pack_left(t, p, m, b_.index(0));
      tiles(last, {left_, 0, depth()});
    };
    if (!copies_last_rows() && last == tile_.mr) return tiles(tile_.mr, left(t, p, m));
    b_.if_(m + tile_.mr <= sizes_.m, [&] { tiles(tile_.mr, left(t, p, m)); }, short_row_block);
  }

  Builder::Rows left(const GemmTask& t, const GemmPass& p, Value m) {
    switch (plan_.lhs) {
      case Source::direct: return lhs_.rows_in_memory(t.batch, m, 2 * p.k0);
      case Source::loaded: return {left_, (m - t.m0) * depth(), tile_.split_bf16() ? kernel::tile_depth : depth()};
      case Source::packed: break;
    }
    if (tile_.split_bf16()) return {lhs_.packed, packed_row_block(t, p, m), kernel::tile_depth};
    const Value rows = b_.round_up(sizes_.m, tile_.mr);
    return {lhs_.packed, ((lhs_.batch_in_workspace(t.batch) * rows + m) * steps_ + p.k0) * 2, steps_ * 2};
  }

  /// Returns where the terms of a row block of the packed left operand start.
  Value packed_row_block(const GemmTask& t, const GemmPass& p, Value m) {
    const Value row_block = lhs_.batch_in_workspace(t.batch) * b_.ceil_div(sizes_.m, tile_.mr) + m / tile_.mr;
    return (row_block * steps_ + p.k0) * (2 * tile_.mr * tile_.terms());
  }

  /// Returns the start of the next row block, if prefetching it pays off: row blocks come from L3, because a block of
  /// the right operand fills L2. After the last one of a task comes the first one of the next task.
  std::optional<Value> next_row_block(const GemmTask& t, const GemmPass& p, Value m) {
    if (!tile_.split_bf16() || plan_.lhs != Source::packed || plan_.rhs != Source::packed) return {};
    const Value next = m + tile_.mr;
    return packed_row_block(t, p, b_.select(next < t.m1, next, t.m0));
  }

  /// Cache lines of the next row block that each block of columns prefetches per 32 k.
  int prefetch_distance() const {
    const int cache_lines = tile_.mr * tile_.terms() * kernel::tile_depth / elements_of_cache_line,
              blocks = tile_.nc / tile_.n_step();
    return (cache_lines + blocks - 1) / blocks;
  }

  void columns(const GemmTask& t, const GemmPass& p, Value n, Value sums, int rows, const Builder::Rows& left,
               const std::optional<Value>& next) {
    const Value share = p.depth / (kernel::tile_depth / 2) * (prefetch_distance() * elements_of_cache_line);
    Builder::Rows right{right_, (n - t.n0) * depth(), 2 * tile_.n_step()};
    if (plan_.rhs == Source::packed) {
      const Value micro_panel =
          rhs_.batch_in_workspace(t.batch) * b_.ceil_div(sizes_.n, tile_.n_step()) + n / tile_.n_step();
      right.buffer = rhs_.packed, right.first = (micro_panel * steps_ + p.k0) * (2 * tile_.n_step() * tile_.terms());
    }
    const auto block = [&](int width) {
      const auto multiply = [&](bool continues) {
        kernel::TileBlock shape{
            .rows = rows, .columns = width, .continues = continues, .split_bf16 = tile_.split_bf16()};
        if (next)
          shape.prefetch_lines = prefetch_distance(), shape.prefetch = *next + (n - t.n0) / tile_.n_step() * share;
        tile_mma(b_, shape, {sums_, sums, tile_.nc}, left, right, p.depth * 2);
      };
      const Value continues = blocks_ ? p.k0 % tile_.block > 0 : p.continues;
      b_.if_(continues, [&] { multiply(true); }, [&] { multiply(false); });
    };
    with_columns(n, block);
  }

  /// Emits body(width) for the columns from n on: 32, or half as many if no more are left of a known n.
  void with_columns(Value n, const std::function<void(int width)>& body) {
    const auto known = b_.constant_value(sizes_.n);
    const bool half = known && *known % tile_.n_step() > 0 && *known % tile_.n_step() <= kernel::tile_side;
    if (!half) return body(tile_.n_step());
    b_.if_(n + tile_.n_step() <= sizes_.n, [&] { body(tile_.n_step()); }, [&] { body(kernel::tile_side); });
  }

  /// Scales back and repairs the sums of split bf16 (SplitBf16Sums) of the rows from m on and all columns of a task.
  void finish_sums(const GemmTask& t, Value m, Value sums) {
    const auto source = [&](Value row, Value rows, const GemmOperand& o) {
      return MicroPanelSource{t.batch, row, rows, b_.index(0), sizes_.k, sizes_.k, tile_.mr, o.axis, &o.load};
    };
    b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
      with_columns(n, [&](int width) {
        exact_->finish_sums({.sums = sums_,
                             .first = sums + (n - t.n0),
                             .stride = b_.index(tile_.nc),
                             .rows = sizes_.m - m,
                             .columns = sizes_.n - n,
                             .vectors = width / tile_.lanes},
                            source(m, sizes_.m, lhs_), source(n, sizes_.n, rhs_));
      });
    });
  }

  /// Passes the finished rows from m on to the epilogue.
  void finish(const GemmTask& t, Value m, Value sums) {
    if (tile_.split_bf16()) finish_sums(t, m, sums);
    const int lanes = tile_.lanes, bytes = lanes * static_cast<int>(size_in_bytes(f32)), step = tile_.n_step();
    const Value width = t.n1 - t.n0, even = width / step * step;
    b_.for_loop(m, min(m + tile_.mr, t.m1), 1, [&](Value row) {
      const RowEpilogue consume = epilogue_(t.batch, row);
      const Value position = sums + (row - m) * tile_.nc;
      const auto vector = [&](Value c, Value mask) {
        consume(t.n0 + c, lanes, b_.load(sums_, position + c, lanes, {}, bytes), mask);
      };
      b_.for_loop(0, even, step, [&](Value c) {
        for (int v = 0; v < tile_.nv; ++v) vector(c + v * lanes, {});
      });
      if (known_multiple(b_, sizes_.n, step)) return;
      b_.for_loop(even, width, lanes, [&](Value c) { vector(c, b_.tail_mask(width - c, lanes)); });
    });
  }

  Builder& b_;
  const GemmPlan& plan_;
  const GemmTile& tile_;
  const GemmSizes sizes_;
  const GemmOperand &lhs_, &rhs_;
  const Epilogue& epilogue_;
  Value passes_, steps_;         ///< blocks of k; total pairs of k
  std::optional<Value> blocks_;  ///< whether sums have several blocks of k; empty: they have one
  std::optional<SplitBf16Sums> exact_;
  Buffer sums_, left_, right_;
};

}  // namespace

void emit_tile_gemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                    const GemmOperand& rhs, const Epilogue& epilogue) {
  TileGemm(b, plan, sizes, lhs, rhs, epilogue).emit();
}

}  // namespace lathe::cpu
