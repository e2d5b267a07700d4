#include <algorithm>
#include <optional>
#include <utility>

#include "ir/support/error.h"
#include "passes/cpu/gemm/gemm_remainder.h"
#include "passes/cpu/gemm/gemm_strategies.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;
using kernel::Var;

namespace {

/// One register tile: rows m .. m + rows of the packed rows that start at `first`, columns n .., the position of its
/// sums, and the position of the sums of the tile above it.
struct TilePosition {
  Value first, m, n, sums, above;
  int rows;
};

class BlockedGemm {
 public:
  BlockedGemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
              const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch)
      : b_(b),
        plan_(plan),
        tile_(plan.tile),
        sizes_{sizes.batch, sizes.m, sizes.n - plan.remainder, sizes.k, sizes.actual},
        lhs_(lhs),
        rhs_(rhs),
        epilogue_(epilogue),
        prefetch_(prefetch) {
    if (plan.lhs == Source::loaded && tile_.lanes % tile_.mr == 0) left_rows_ = tile_.lanes;
    LATHE_ASSERT(!sizes.actual || (plan.remainder == 0 && plan.lhs != Source::packed && plan.rhs != Source::packed));
    if (plan.remainder > 0) remainder_.emplace(b, plan, sizes, lhs, rhs, epilogue);
  }

  void emit() {
    set_steps();
    const Value columns = block_size(b_, sizes_.n, b_.index(tile_.nc), tile_.n_step());
    const Value rows = block_size(b_, sizes_.m, rows_of_task(b_.ceil_div(sizes_.n, columns)), left_rows_);
    for_each_task(b_, sizes_, rows, columns, [&](const GemmTask& t) { sizes_.actual ? actual_task(t) : task(t); });
  }

 private:
  void set_steps() {
    steps_ = steps_of_k(b_, tile_, sizes_.k);
    passes_ = max(b_.ceil_div(steps_, tile_.kc), 1);
    if (tile_.one_block(b_.constant_value(steps_))) return;
    block_ = tile_.block;
    LATHE_ASSERT(one_pass() || tile_.kc % block_ == 0 || block_ % tile_.kc == 0);
    LATHE_ASSERT(!register_epilogue());
  }

  bool one_pass() const { return b_.is_constant(passes_, 1); }
  /// Whether a block of sums takes several passes, which keep its part in `parts_`.
  bool several_passes_per_block() const { return block_ > tile_.kc && !one_pass(); }
  bool several_blocks_per_pass() const { return block_ > 0 && (block_ < tile_.kc || one_pass()); }

  /// mc rounded down to whole units of packed rows.
  int most_rows() const { return floor_to(tile_.mc, left_rows_); }

  /// Returns at most mc; less if there would be few tasks, unless each task packs or prefetches the right operand for
  /// its rows.
  Value rows_of_task(Value column_blocks) {
    if (plan_.rhs == Source::loaded || plan_.prefetch_right) return b_.index(most_rows());
    return rows_for_tasks(b_, sizes_, column_blocks, plan_, left_rows_);
  }

  /// Emits a task for the sizes that are known when the kernel runs.
  void actual_task(const GemmTask& t) {
    const GemmSizes::Actual now = sizes_.actual();
    sizes_.m = now.m, sizes_.k = now.k;
    set_steps();
    GemmTask part = t;
    part.m1 = min(t.m1, sizes_.m);
    b_.if_(part.m0 < part.m1, [&] { task(part); });
  }

  void task(const GemmTask& t) {
    const int least = overlaps() ? 2 : 1;
    const bool in_turn = one_pass() && !plan_.prefetch_right;
    const int row_blocks = in_turn ? least : std::max(most_rows() / tile_.mr, least);
    const std::int64_t sums = std::int64_t{row_blocks} * tile_.mr * tile_.nc;
    if (!register_epilogue()) sums_ = b_.alloc(tile_.compute, sums, kernel::Space::stack, "sums");
    if (several_passes_per_block()) parts_ = b_.alloc(tile_.compute, sums, kernel::Space::stack, "parts");
    if (plan_.lhs == Source::loaded)
      left_ = b_.alloc(tile_.packed(), unit_ * (std::int64_t{left_rows_} * tile_.kc + tile_.lanes),
                       kernel::Space::stack, "left");
    if (plan_.rhs == Source::loaded)
      right_ = b_.alloc(tile_.packed(), unit_ * std::int64_t{tile_.nc} * tile_.kc, kernel::Space::stack, "right");
    if (remainder_) remainder_->begin();
    for_each_pass(b_, steps_, passes_, tile_.kc, [&](const GemmPass& p) { pass(t, p); });
  }

  void pass(const GemmTask& t, const GemmPass& p) {
    if (plan_.rhs == Source::loaded) pack_right(t, p);
    if (!remainder_) return row_blocks(t, p, t.m0, t.m1);
    if (plan_.rhs != Source::direct)
      b_.if_(takes_remainder(t), [&] { remainder_->copy(t.batch, p.k0, p.k0 + p.depth); });
    // The remaining columns are summed while the rows are in cache.
    const int block = RemainderColumns::block(plan_, lhs_.axis);
    b_.for_loop(t.m0, t.m1, block, [&](Value m) {
      const Value end = min(m + block, t.m1);
      row_blocks(t, p, m, end);
      b_.if_(p.last && takes_remainder(t), [&] { remainder_->rows(t.batch, m, end); });
    });
  }

  /// Whether a task includes the last columns that fill vectors; it then computes the remaining ones too.
  Value takes_remainder(const GemmTask& t) { return kernel::equal(t.n1, sizes_.n); }

  void row_blocks(const GemmTask& t, const GemmPass& p, Value m0, Value m1) {
    if (plan_.prefetch_right) return columns_and_row_blocks(t, p);
    b_.for_loop(m0, m1, left_rows_, [&](Value first) {
      if (plan_.lhs == Source::loaded) pack_left(t, p, first);
      if (left_rows_ == tile_.mr) return row_block(t, p, first, first);
      b_.for_loop(first, min(first + left_rows_, m1), tile_.mr, [&](Value m) { row_block(t, p, first, m); });
    });
  }

  /// Processes all row blocks for one tile of columns at a time.
  void columns_and_row_blocks(const GemmTask& t, const GemmPass& p) {
    LATHE_ASSERT(plan_.lhs == Source::direct && plan_.rhs == Source::direct && !remainder_);
    const auto row_blocks = [&](const Builder::Body& body) { b_.for_loop(t.m0, t.m1, tile_.mr, body); };
    b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
      row_blocks([&](Value m) {
        const Value sums = row_block_base(t, m) + (n - t.n0) * tile_.mr;
        known_rows(m, [&](int rows) {
          columns(t, p, {.first = m, .m = m, .n = n, .sums = sums, .above = sums, .rows = rows});
        });
      });
    });
    if (!register_epilogue())
      b_.if_(p.last, [&] { row_blocks([&](Value m) { row_block_epilogue(t, m, row_block_base(t, m)); }); });
  }

  /// Emits body(rows) for the rows from m on: mr of them, or the remaining ones of a known number.
  void known_rows(Value m, const std::function<void(int rows)>& body) {
    const auto known = b_.constant_value(sizes_.m);
    const auto last = static_cast<int>(known ? *known % tile_.mr : 0);
    if (last == 0) return body(tile_.mr);
    b_.if_(m + tile_.mr <= sizes_.m, [&] { body(tile_.mr); }, [&] { body(last); });
  }

  /// Processes rows m .. m + mr of the packed rows that start at `first`.
  void row_block(const GemmTask& t, const GemmPass& p, Value first, Value m) {
    const Value base = row_block_base(t, m), above = row_block_base(t, m - tile_.mr);
    const auto tiles = [&](int rows) {
      b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
        const Value column = (n - t.n0) * tile_.mr;
        columns(t, p, {.first = first, .m = m, .n = n, .sums = base + column, .above = above + column, .rows = rows});
      });
    };
    const auto all = [&](bool copying) {
      copying_ = copying;
      known_rows(m, tiles);
    };
    const bool copies = remainder_ && plan_.rhs == Source::direct;
    copies ? b_.if_(kernel::equal(m, t.m0), [&] { all(true); }, [&] { all(false); }) : all(false);
    if (register_epilogue()) return;
    // With overlap, a row block is finished while the next one is summed, except the last one.
    const Value now = overlaps() ? p.last && m + tile_.mr >= t.m1 : p.last;
    b_.if_(now, [&] { row_block_epilogue(t, m, base); });
  }

  /// Returns where the sums of a row block start. Sums are stored as [block of mr rows][n_step columns][mr][n_step].
  /// With one pass, the memory of one row block is enough, or of two in turn.
  Value row_block_base(const GemmTask& t, Value m) {
    const Value row = m - t.m0;
    if (plan_.prefetch_right) return row * tile_.nc;
    const Value in_turn = overlaps() ? row / tile_.mr % 2 * (tile_.mr * tile_.nc) : b_.index(0);
    return b_.select(kernel::equal(passes_, 1), in_turn, row * tile_.nc);
  }

  void pack_left(const GemmTask& t, const GemmPass& p, Value m) {
    const MicroPanelSource from{t.batch, m, sizes_.m, p.k0, p.depth, sizes_.k, left_rows_, lhs_.axis, &lhs_.load};
    emit_pack_micro_panel(b_, tile_, from, {.buffer = left_, .base = b_.index(0), .overrun = true});
  }

  void pack_right(const GemmTask& t, const GemmPass& p) {
    b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
      const MicroPanelSource from{t.batch,        n,         sizes_.n,  p.k0, p.depth, sizes_.k,
                                  tile_.n_step(), rhs_.axis, &rhs_.load};
      emit_pack_micro_panel(b_, tile_, from, {.buffer = right_, .base = (n - t.n0) * tile_.kc});
    });
  }

  /// Returns the number of vectors of columns in the last tile: 0 if unknown, nv if there are only whole tiles.
  int known_tail() {
    const auto n = b_.constant_value(sizes_.n);
    if (!n) return 0;
    const auto left = static_cast<int>(*n % tile_.n_step());
    return left == 0 ? tile_.nv : (left + tile_.lanes - 1) / tile_.lanes;
  }

  /// Emits a tile with as many vectors as are left of n. If the right operand is read directly, the last tile is
  /// masked.
  void columns(const GemmTask& t, const GemmPass& p, const TilePosition& at) {
    const bool masked = plan_.rhs == Source::direct && !known_multiple(b_, sizes_.n, tile_.lanes);
    const int tail = known_tail();
    const auto whole = [&] { micro_tile(t, p, at, tile_.nv, false); };
    if (tail == tile_.nv && !masked) return whole();
    const Value left = sizes_.n - at.n;
    const std::function<void(int)> last = [&](int nv) {
      const auto tile = [&, nv] { micro_tile(t, p, at, nv, masked); };
      if (tail == nv || nv == tile_.nv) return tile();
      b_.if_(left <= nv * tile_.lanes, tile, [&, nv] { last(nv + 1); });
    };
    const int fewest = tail == 0 ? 1 : tail;
    if (tail == 0 && !masked) return last(fewest);
    b_.if_(left >= tile_.n_step(), whole, [&] { last(fewest); });
  }

  using Accumulators = std::vector<Var>;
  /// Adds the products of a step of k.
  using Step = std::function<void(const Accumulators& acc, Value k)>;

  void micro_tile(const GemmTask& t, const GemmPass& p, const TilePosition& at, int nv, bool masked) {
    if (several_blocks_per_pass()) return blocks_of_tile(t, p, at, nv, masked);
    const Accumulators acc = zeros(at, nv);
    if (several_passes_per_block())
      b_.if_(p.k0 % block_ > 0, [&] { load_sums(acc, at, nv, parts_); });
    else if (block_ == 0 && !register_epilogue())
      b_.if_(p.continues, [&] { load_sums(acc, at, nv, sums_); });
    steps(t, at, nv, {acc, b_.index(0), p.depth, p.last}, tile_step(t, p, at, nv, masked));
    if (register_epilogue()) return finish_tile(t, at, nv, acc);
    if (block_ == 0) return store_sums(acc, at, nv, sums_);
    if (!several_passes_per_block()) return add_to_total(acc, at, nv, p.continues);
    b_.if_(
        p.last || kernel::equal((p.k0 + p.depth) % block_, 0), [&] { add_to_total(acc, at, nv, p.k0 >= block_); },
        [&] { store_sums(acc, at, nv, parts_); });
  }

  /// A pass over several blocks of sums. The tile above goes through the epilogue during the first one; no other is
  /// longer.
  void blocks_of_tile(const GemmTask& t, const GemmPass& p, const TilePosition& at, int nv, bool masked) {
    const Step step = tile_step(t, p, at, nv, masked);
    b_.for_loop(0, max(p.depth, 1), block_, [&](Value first) {
      const Accumulators acc = zeros(at, nv);
      const Value overlapped = p.last && kernel::equal(first, 0);
      steps(t, at, nv, {acc, first, min(first + block_, p.depth), overlapped}, step);
      add_to_total(acc, at, nv, p.k0 + first > 0);
    });
  }

  Step tile_step(const GemmTask& t, const GemmPass& p, const TilePosition& at, int nv, bool masked) {
    const auto left = left_elements(t, p, at);
    const auto right = right_vectors(t, p, at.n, masked);
    const Builder::Body prefetch = operand_prefetch(t, p, at);
    return [this, t, p, nv, left, right, prefetch, rows = at.rows](const Accumulators& acc, Value k) {
      if (prefetch) prefetch(k);
      if (copying_) remainder_->copy(t.batch, p.k0 + k, p.k0 + k + 1);
      std::vector<Value> column;
      for (int v = 0; v < nv; ++v) column.push_back(right(k, v));
      for (int i = 0; i < rows; ++i) {
        const Value row = in_every_lane(b_, left(k, i), tile_.lanes);
        for (int v = 0; v < nv; ++v) {
          const Var sum = acc[index(i, v, nv)];
          b_.set(sum, multiply_add(b_, row, column[v], b_.get(sum)));
        }
      }
    };
  }

  Accumulators zeros(const TilePosition& at, int nv) {
    Accumulators acc;
    for (int i = 0; i < at.rows * nv; ++i) acc.push_back(b_.var({tile_.compute, tile_.lanes}, zero()));
    return acc;
  }

  /// Calls body(accumulator, position in the scratch of sums) for each vector of a tile.
  void each_vector(const Accumulators& acc, const TilePosition& at, int nv,
                   const std::function<void(const Var& sum, Value position)>& body) const {
    for (int i = 0; i < at.rows; ++i)
      for (int v = 0; v < nv; ++v) body(acc[index(i, v, nv)], at.sums + (i * tile_.n_step() + v * tile_.lanes));
  }

  void load_sums(const Accumulators& acc, const TilePosition& at, int nv, Buffer from) {
    each_vector(acc, at, nv, [&](const Var& sum, Value position) { b_.set(sum, load_vector(from, position)); });
  }

  void store_sums(const Accumulators& acc, const TilePosition& at, int nv, Buffer to) {
    each_vector(acc, at, nv,
                [&](const Var& sum, Value position) { b_.store(to, position, b_.get(sum), {}, vector_bytes()); });
  }

  /// Adds the sums of a finished block to the totals. The first block has none and is stored.
  void add_to_total(const Accumulators& acc, const TilePosition& at, int nv, Value continues) {
    b_.if_(continues, [&] {
      each_vector(acc, at, nv,
                  [&](const Var& sum, Value position) { b_.set(sum, load_vector(sums_, position) + b_.get(sum)); });
    });
    store_sums(acc, at, nv, sums_);
  }

  int vector_bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }
  Value load_vector(Buffer from, Value position) { return b_.load(from, position, tile_.lanes, {}, vector_bytes()); }
  /// Returns the prefetches of a tile at a step of k: the left operand's next rows. With prefetch_right: its own
  /// columns prefetch_steps ahead or, in blocks of k, its row block's share of the next columns.
  Builder::Body operand_prefetch(const GemmTask& t, const GemmPass& p, const TilePosition& at) {
    if (prefetches_left()) return [this, t, p, at](Value k) { lhs_.prefetch(t.batch, at.m + tile_.lanes, p.k0 + k); };
    if (!plan_.prefetch_right || !rhs_.prefetch) return {};
    const auto prefetch = [this, batch = t.batch](int vectors, Value n, Value k0) -> Builder::Body {
      return [this, batch, vectors, n, k0](Value k) {
        for (int v = 0; v < vectors; ++v) rhs_.prefetch(batch, n + v * tile_.lanes, k0 + k);
      };
    };
    if (one_pass()) return prefetch(tile_.nv, at.n, b_.index(plan_.prefetch_steps));
    const auto rows = static_cast<int>(std::min<std::int64_t>(*b_.constant_value(sizes_.m), most_rows()));
    const int row_blocks = (rows + tile_.mr - 1) / tile_.mr, share = (tile_.nv + row_blocks - 1) / row_blocks;
    const Value beside = at.n + tile_.n_step(), more = beside < t.n1;
    const Value n = b_.select(more, beside, t.n0) + (at.m - t.m0) / tile_.mr * (share * tile_.lanes);
    return prefetch(share, n, b_.select(more, p.k0, p.k0 + tile_.kc));
  }

  /// Whether a row block's results go through the epilogue, with prefetched memory, while the next row block is
  /// summed. Short sums finish before the memory arrives.
  bool overlaps() const {
    const auto k = b_.constant_value(sizes_.k), n = b_.constant_value(sizes_.n);
    return !register_epilogue() && !plan_.prefetch_right && prefetch_ && n && (!k || *k >= plan_.overlap_depth);
  }

  /// Whether the left operand is prefetched, a vector of rows ahead. If it is read along its rows, each step of k
  /// touches another cache line, which hardware prefetchers do not predict. With several tiles per row block it would
  /// be prefetched several times.
  bool prefetches_left() const {
    return (overlaps() || register_epilogue()) && plan_.lhs == Source::direct && lhs_.axis == LaneAxis::row &&
           lhs_.prefetch && tile_.nc == tile_.n_step();
  }

  /// Whether a tile's results go from registers to the epilogue.
  bool register_epilogue() const { return plan_.register_epilogue && one_pass(); }

  /// Passes a whole tile to the epilogue.
  void finish_tile(const GemmTask& t, const TilePosition& at, int nv, const std::vector<Var>& acc) {
    const bool exact = b_.constant_value(sizes_.m).has_value();
    for (int i = 0; i < at.rows; ++i) {
      const auto row = [&, i] {
        const RowEpilogue consume = epilogue_(t.batch, at.m + i);
        for (int v = 0; v < nv; ++v) {
          const Value n = at.n + v * tile_.lanes;
          consume(n, tile_.lanes, b_.get(acc[index(i, v, nv)]), mask_of(n, nv));
        }
      };
      exact ? row() : b_.if_(at.m + i < sizes_.m, row);
    }
  }

  /// Returns the mask of the results from n on that exist, in a tile of nv vectors; empty: all.
  Value mask_of(Value n, int nv) {
    const bool whole = b_.constant_value(sizes_.n) && nv == tile_.nv && known_tail() != tile_.nv;
    return whole || known_multiple(b_, sizes_.n, tile_.lanes) ? Value{} : b_.tail_mask(sizes_.n - n, tile_.lanes);
  }

  /// Steps lo .. hi of a pass, which the accumulators add.
  struct Steps {
    const Accumulators& acc;
    Value lo, hi;
    Value last;  ///< whether the epilogue of the tile above may overlap with them
  };

  /// Processes steps of k. With overlap, it does so in as many parts as a row block has rows. In the last pass, each
  /// part first prefetches the memory that the epilogue of one row accesses. It also finishes that row of the tile
  /// above, so that divisions and square roots overlap with the sums.
  void steps(const GemmTask& t, const TilePosition& at, int nv, const Steps& of, const Step& step) {
    const Builder::Body body = [&](Value k) { step(of.acc, k); };
    if (!overlaps()) return b_.for_loop(of.lo, of.hi, 1, body);
    const Value part = b_.ceil_div(of.hi - of.lo, tile_.mr);
    b_.for_loop(0, tile_.mr, 1, [&](Value row) {
      b_.if_(of.last, [&] {
        for (int v = 0; v < nv; ++v) prefetch_(t.batch, at.m + row, at.n + v * tile_.lanes);
      });
      b_.if_(of.last && at.m > t.m0, [&] { finish_above(t, at, row, nv); });
      const Value first = of.lo + row * part;
      b_.for_loop(first, min(first + part, of.hi), 1, body);
    });
  }

  /// Passes a row of the tile above to the epilogue.
  void finish_above(const GemmTask& t, const TilePosition& at, Value row, int nv) {
    const int lanes = tile_.lanes;
    const RowEpilogue consume = epilogue_(t.batch, at.m - tile_.mr + row);
    for (int v = 0; v < nv; ++v) {
      const Value n = at.n + v * lanes, sums = load_vector(sums_, at.above + (row * tile_.n_step() + v * lanes));
      consume(n, lanes, sums, mask_of(n, nv));
    }
  }

  static std::size_t index(int i, int v, int nv) { return static_cast<std::size_t>(i * nv + v); }
  Value zero() { return b_.constant(tile_.compute, 0, tile_.lanes); }

  using Element = std::function<Value(Value k, int i)>;

  Element left_elements(const GemmTask& t, const GemmPass& p, const TilePosition& at) {
    if (plan_.lhs == Source::direct) {
      std::vector<Value> rows;
      for (int i = 0; i < at.rows; ++i) rows.push_back(i == 0 ? at.m : min(at.m + i, sizes_.m - 1));
      return [this, t, p, rows](Value k, int i) { return lhs_.load(t.batch, rows[i], p.k0 + k, lhs_.axis, 1, {}); };
    }
    const bool packed = plan_.lhs == Source::packed;
    const Buffer buffer = packed ? lhs_.packed : left_;
    Value base = at.m - at.first;
    if (packed) {
      const Value micro_panels = b_.ceil_div(sizes_.m, tile_.mr);
      base = ((lhs_.batch_in_workspace(t.batch) * micro_panels + at.m / tile_.mr) * steps_ + p.k0) * tile_.mr;
    }
    const int width = packed ? tile_.mr : left_rows_;
    return [this, buffer, base, width](Value k, int i) {
      return b_.load(buffer, (base + (k * width + i)) * unit_, unit_);
    };
  }

  Element right_vectors(const GemmTask& t, const GemmPass& p, Value n, bool masked) {
    const int lanes = tile_.lanes;
    if (plan_.rhs == Source::direct) {
      std::vector<Value> masks(static_cast<std::size_t>(tile_.nv));
      for (int v = 0; masked && v < tile_.nv; ++v) masks[v] = b_.tail_mask(sizes_.n - n - v * lanes, lanes);
      return [this, t, p, n, masks, lanes](Value k, int v) {
        return rhs_.load(t.batch, n + v * lanes, p.k0 + k, LaneAxis::row, lanes, masks[v]);
      };
    }
    const bool packed = plan_.rhs == Source::packed;
    const Buffer buffer = packed ? rhs_.packed : right_;
    Value base = (n - t.n0) * tile_.kc;
    if (packed) {
      const Value micro_panels = b_.ceil_div(sizes_.n + plan_.remainder, tile_.n_step());
      const Value micro_panel = rhs_.batch_in_workspace(t.batch) * micro_panels + n / tile_.n_step();
      base = (micro_panel * steps_ + p.k0) * tile_.n_step();
    }
    return [this, buffer, base, lanes, bytes = vector_bytes()](Value k, int v) {
      return b_.load(buffer, (base + (k * tile_.n_step() + v * lanes)) * unit_, unit_ * lanes, {}, bytes);
    };
  }

  /// Passes the finished rows m .. of a row block, whose sums start at `base`, to the epilogue.
  void row_block_epilogue(const GemmTask& t, Value m, Value base) {
    const int lanes = tile_.lanes, step = tile_.n_step();
    const Value width = t.n1 - t.n0, even = width / step * step;
    b_.for_loop(m, min(m + tile_.mr, t.m1), 1, [&](Value row) {
      const RowEpilogue consume = epilogue_(t.batch, row);
      const Value position = base + (row - m) * step;
      const auto vector = [&](Value column, Value c, Value mask) {
        consume(t.n0 + column + c, lanes, load_vector(sums_, position + column * tile_.mr + c), mask);
      };
      b_.for_loop(0, even, step, [&](Value column) {
        for (int v = 0; v < tile_.nv; ++v) vector(column, b_.index(v * lanes), {});
      });
      if (known_multiple(b_, sizes_.n, step)) return;
      const Value left = width - even;
      b_.for_loop(0, left, lanes, [&](Value c) { vector(even, c, b_.tail_mask(left - c, lanes)); });
    });
  }

  Builder& b_;
  const GemmPlan& plan_;
  const GemmTile& tile_;
  GemmSizes sizes_;  ///< without the remaining columns
  const GemmOperand &lhs_, &rhs_;
  const Epilogue& epilogue_;
  const EpiloguePrefetch& prefetch_;
  Value passes_, steps_;                ///< blocks of k; total steps of k
  int block_ = 0;                       ///< tile_.block, or 0 if no sum has more than one block
  Buffer sums_, parts_, left_, right_;  ///< parts_: the sums of a block that further passes continue
  std::optional<RemainderColumns> remainder_;
  bool copying_ = false;  ///< the emitted tiles copy the remaining columns, whose cache lines are then in L1
  int unit_ = plan_.tile.pairs() ? 2 : 1;  ///< elements per step of k
  /// Rows that are packed at a time: whole vectors of rows, so that no lane is wasted.
  int left_rows_ = plan_.tile.mr;
};

}  // namespace

void emit_blocked_gemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                       const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch) {
  BlockedGemm(b, plan, sizes, lhs, rhs, epilogue, prefetch).emit();
}

}  // namespace lathe::cpu
