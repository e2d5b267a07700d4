#include <algorithm>
#include <optional>
#include <utility>

#include "ir/support/error.h"
#include "passes/cpu/gemm/blocked/blocked_operands.h"
#include "passes/cpu/gemm/blocked/blocked_sums.h"
#include "passes/cpu/gemm/blocked/gemm_remainder.h"
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

class BlockedGemm {
 public:
  BlockedGemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
              const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch)
      : b_(b),
        plan_(plan),
        tile_(plan.tile),
        sizes_{sizes.batch, sizes.m, sizes.n - plan.remainder, sizes.k, sizes.actual},
        lhs_(lhs),
        operands_(b, plan, lhs, rhs),
        sums_(b, plan, epilogue),
        prefetch_(prefetch) {
    LATHE_ASSERT(!sizes.actual || (plan.remainder == 0 && plan.lhs != Source::packed && plan.rhs != Source::packed));
    if (plan.remainder > 0) remainder_.emplace(b, plan, sizes, lhs, rhs, epilogue);
  }

  void emit() {
    set_steps();
    const Value columns = block_size(b_, sizes_.n, b_.index(tile_.nc), tile_.n_step());
    const Value rows = block_size(b_, sizes_.m, rows_of_task(b_.ceil_div(sizes_.n, columns)), operands_.left_rows());
    for_each_task(b_, sizes_, rows, columns, [&](const GemmTask& t) { sizes_.actual ? actual_task(t) : task(t); });
  }

 private:
  void set_steps() {
    steps_ = steps_of_k(b_, tile_, sizes_.k);
    passes_ = max(b_.ceil_div(steps_, tile_.kc), 1);
    operands_.set_sizes(sizes_, steps_);
    sums_.set_sizes(sizes_);
    if (tile_.one_block(b_.constant_value(steps_))) return;
    block_ = tile_.block;
    LATHE_ASSERT(one_pass() || tile_.kc % block_ == 0 || block_ % tile_.kc == 0);
    LATHE_ASSERT(!register_epilogue());
  }

  bool one_pass() const { return b_.is_constant(passes_, 1); }
  /// Whether a block of sums takes several passes, which keep its part in scratch.
  bool several_passes_per_block() const { return block_ > tile_.kc && !one_pass(); }
  bool several_blocks_per_pass() const { return block_ > 0 && (block_ < tile_.kc || one_pass()); }

  /// Returns at most mc; less if the cores then finish earlier, unless each task prefetches the right operand for its
  /// rows.
  Value rows_of_task(Value column_blocks) {
    if (plan_.prefetch_right) return b_.index(operands_.most_rows());
    return rows_for_tasks(b_, sizes_, column_blocks, plan_, operands_.left_rows());
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
    const int row_blocks = in_turn ? least : std::max(operands_.most_rows() / tile_.mr, least);
    const std::int64_t sums = std::int64_t{row_blocks} * tile_.mr * tile_.nc;
    if (!register_epilogue()) sums_.allocate(sums);
    if (several_passes_per_block()) sums_.allocate_parts(sums);
    if (block_ > 0 && tile_.may_compensate(b_.constant_value(steps_)))
      sums_.allocate_excess(sums, steps_ > tile_.most_plain_steps());
    operands_.allocate();
    if (remainder_) remainder_->begin();
    for_each_pass(b_, steps_, passes_, tile_.kc, [&](const GemmPass& p) { pass(t, p); });
  }

  void pass(const GemmTask& t, const GemmPass& p) {
    if (plan_.rhs == Source::loaded) operands_.pack_right(t, p);
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
    b_.for_loop(m0, m1, operands_.left_rows(), [&](Value first) {
      if (plan_.lhs == Source::loaded) operands_.pack_left(t, p, first);
      if (operands_.left_rows() == tile_.mr) return row_block(t, p, first, first);
      b_.for_loop(first, min(first + operands_.left_rows(), m1), tile_.mr,
                  [&](Value m) { row_block(t, p, first, m); });
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
      b_.if_(p.last, [&] { row_blocks([&](Value m) { sums_.finish_rows(t, m, row_block_base(t, m)); }); });
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
    b_.if_(now, [&] { sums_.finish_rows(t, m, base); });
  }

  /// Returns where the sums of a row block start. Sums are stored as [block of mr rows][n_step columns][mr][n_step].
  /// With one pass, the memory of one row block is enough, or of two in turn.
  Value row_block_base(const GemmTask& t, Value m) {
    const Value row = m - t.m0;
    if (plan_.prefetch_right) return row * tile_.nc;
    const Value in_turn = overlaps() ? row / tile_.mr % 2 * (tile_.mr * tile_.nc) : b_.index(0);
    return b_.select(kernel::equal(passes_, 1), in_turn, row * tile_.nc);
  }

  /// Emits a tile with as many vectors as are left of n. If the right operand is read directly, the last tile is
  /// masked.
  void columns(const GemmTask& t, const GemmPass& p, const TilePosition& at) {
    const bool masked = plan_.rhs == Source::direct && !known_multiple(b_, sizes_.n, tile_.lanes);
    const int tail = sums_.known_tail();
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

  using Accumulators = BlockedSums::Accumulators;
  /// Adds the products of a step of k.
  using Step = std::function<void(const Accumulators& acc, Value k)>;

  void micro_tile(const GemmTask& t, const GemmPass& p, const TilePosition& at, int nv, bool masked) {
    if (several_blocks_per_pass()) return blocks_of_tile(t, p, at, nv, masked);
    const Accumulators acc = sums_.zeros(at, nv);
    if (several_passes_per_block())
      b_.if_(p.k0 % block_ > 0, [&] { sums_.load_parts(acc, at, nv); });
    else if (block_ == 0 && !register_epilogue())
      b_.if_(p.continues, [&] { sums_.load(acc, at, nv); });
    steps(t, at, nv, {acc, b_.index(0), p.depth, p.last}, tile_step(t, p, at, nv, masked));
    if (register_epilogue()) return sums_.finish_tile(t, at, nv, acc);
    if (block_ == 0) return sums_.store(acc, at, nv);
    if (!several_passes_per_block()) return sums_.add_to_total(acc, at, nv, p.continues);
    b_.if_(
        p.last || kernel::equal((p.k0 + p.depth) % block_, 0),
        [&] { sums_.add_to_total(acc, at, nv, p.k0 >= block_); }, [&] { sums_.store_parts(acc, at, nv); });
  }

  /// A pass over several blocks of sums. The tile above goes through the epilogue during the first one; no other is
  /// longer.
  void blocks_of_tile(const GemmTask& t, const GemmPass& p, const TilePosition& at, int nv, bool masked) {
    const Step step = tile_step(t, p, at, nv, masked);
    b_.for_loop(0, max(p.depth, 1), block_, [&](Value first) {
      const Accumulators acc = sums_.zeros(at, nv);
      const Value overlapped = p.last && kernel::equal(first, 0);
      steps(t, at, nv, {acc, first, min(first + block_, p.depth), overlapped}, step);
      sums_.add_to_total(acc, at, nv, p.k0 + first > 0);
    });
  }

  Step tile_step(const GemmTask& t, const GemmPass& p, const TilePosition& at, int nv, bool masked) {
    const auto left = operands_.left(t, p, at);
    const auto right = operands_.right(t, p, at.n, masked);
    const Builder::Body prefetch =
        prefetches_left() ? operands_.prefetch_left(t, p, at) : operands_.prefetch_right(t, p, at, one_pass());
    return [this, t, p, nv, left, right, prefetch, rows = at.rows](const Accumulators& acc, Value k) {
      if (prefetch) prefetch(k);
      if (copying_) remainder_->copy(t.batch, p.k0 + k, p.k0 + k + 1);
      std::vector<Value> column;
      for (int v = 0; v < nv; ++v) column.push_back(right(k, v));
      for (int i = 0; i < rows; ++i) {
        const Value row = in_every_lane(b_, left(k, i), tile_.lanes);
        for (int v = 0; v < nv; ++v) {
          const Var sum = sums_.at(acc, i, v, nv);
          b_.set(sum, multiply_add(b_, row, column[v], b_.get(sum)));
        }
      }
    };
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
      b_.if_(of.last && at.m > t.m0, [&] { sums_.finish_above(t, at, row, nv); });
      const Value first = of.lo + row * part;
      b_.for_loop(first, min(first + part, of.hi), 1, body);
    });
  }

  Builder& b_;
  const GemmPlan& plan_;
  const GemmTile& tile_;
  GemmSizes sizes_;  ///< without the remaining columns
  const GemmOperand& lhs_;
  BlockedOperands operands_;
  BlockedSums sums_;
  const EpiloguePrefetch& prefetch_;
  Value passes_, steps_;  ///< blocks of k; total steps of k
  int block_ = 0;         ///< tile_.block, or 0 if no sum has more than one block
  std::optional<RemainderColumns> remainder_;
  bool copying_ = false;  ///< the emitted tiles copy the remaining columns, whose cache lines are then in L1
};

}  // namespace

void emit_blocked_gemm(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                       const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch) {
  BlockedGemm(b, plan, sizes, lhs, rhs, epilogue, prefetch).emit();
}

}  // namespace lathe::cpu
