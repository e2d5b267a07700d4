#include "passes/gpu/attention/attention_online.h"
#include "passes/gpu/attention/attention_tile_skip.h"
#include "passes/lowering/attention/tile_skip_check.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Scope = ElementwiseEmitter::Scope;
using Scopes = AttentionBlock::Scopes;

namespace {

/// Reductions along the columns, the values computed from them, and matmuls over columns: one block per row block.
class RowBlocks {
 public:
  explicit RowBlocks(const AttentionPlan& plan)
      : plan_(plan),
        bounds_(plan.attention.bounds),
        block_(plan, plan.outputs_over_columns_taken ? std::nullopt : std::optional(OutputProducts::over_columns),
               plan.attention.program.stores, "attention", KernelRole::attention),
        b_(block_.b),
        span_(plan.tile.span()),
        own_(plan.tile.own()) {}

  KernelContext::Built run() {
    declare();
    const Value row_blocks = b_.ceil_div(block_.row_count, span_), depths = block_.depth_blocks();
    const auto block = [&](Value i) {
      Value row_block = i / depths % row_blocks;
      if (bounds_.upper) row_block = row_blocks - 1 - row_block;  // the longest first
      const Position position{i / depths / row_blocks, row_block, row_block * span_, i % depths};
      block_.threads(position.depth_block, [&](const AttentionThread& thread) { run(position, thread); });
    };
    b_.for_loop(0, block_.context.dim(plan_.outer()) * row_blocks * depths, 1, block, LoopKind::block_x);
    Dim depth(0);
    for (const auto& score : plan_.attention.parts.scores) depth = depth + score.depth;
    for (const auto& sum : block_.sums) depth = depth + sum->part().depth;
    auto built = block_.context.finish();
    built.launch.flops = plan_.attention.flops(depth);
    return built;
  }

 private:
  struct Position {
    Value outer, row_block, row, depth_block;
  };
  struct Columns {
    Value lo, hi;
  };

  void declare() {
    std::vector<std::pair<int, DType>> written, read;
    for (const auto& [reduction, buffer] : plan_.row_values)
      written.emplace_back(buffer, compute_type(block_.program[reduction].dtype));
    if (plan_.skips >= 0) written.emplace_back(plan_.skips, boolean);
    for (const auto& maximum : plan_.maxima) read.emplace_back(maximum.buffer, plan_.tile.compute);
    block_.begin(written, read);
  }

  void run(const Position& position, const AttentionThread& thread) {
    if (bounds_.any())
      skip_checked(position, thread);
    else
      columns(position, {b_.index(0), block_.column_count}, thread);
    for (auto& sum : block_.sums) sum->finish(position.outer, position.row, thread);
  }

  /// Skips columns that contribute nothing. If the rows fail the tile-skip check, processes all columns.
  void skip_checked(const Position& position, const AttentionThread& thread) {
    const SkippableColumns first =
        skippable_columns(block_.context, plan_, position.outer, position.row, span_, span_);
    const Value skips = go_through(b_, first, block_.column_count, [&](Value lo, Value hi) {
      Scopes rows = columns(position, {lo, hi}, thread);
      return block_.all(rows_allow_skip(block_.emitter, bounds_, rows, first.largest_score), thread);
    });
    if (plan_.skips < 0) return;
    const Value row_blocks = block_.context.dim(plan_.blocks_of(plan_.attention.rows));
    b_.if_(equal(thread.slot, 0) && equal(position.depth_block, 0), [&] {
      b_.store(block_.context.buffer(plan_.skips), position.outer * row_blocks + position.row_block, skips);
    });
  }

  /// Processes these columns for all rows of the row block; returns the rows with their reductions.
  Scopes columns(const Position& position, const Columns& range, const AttentionThread& thread) {
    Scopes rows = block_.rows(position.outer, position.row, thread);
    for (auto& sum : block_.sums) sum->clear_sums();
    if (plan_.online) {
      OnlineLoop(plan_, block_).run(rows, {position.outer, position.row, range.lo}, range.hi, thread);
    } else {
      for (const RowBlockPlan::Loop& l : plan_.row_blocks.loops())
        if (!l.reductions.empty() || !l.stores.empty() || !sums_of(l).empty()) loop(l, position, range, rows, thread);
    }
    for (auto& sum : block_.sums) {
      if (!sum->part().divisor) continue;
      std::vector<Value> divisors;
      for (auto& row : rows) {
        const Value by = block_.emitter.emit(*sum->part().divisor, *row);
        divisors.push_back(b_.select(block_.column_count > 0, by, b_.constant(plan_.tile.compute, 1)));
      }
      block_.scale({sum.get()}, ScalarOp::div, divisors, thread);
    }
    for (int r = 0; r < own_; ++r) store_row(position, r, *rows[r], thread);
    return rows;
  }

  /// Returns the matmuls over columns that read values of this loop.
  std::vector<AttentionSums*> sums_of(const RowBlockPlan::Loop& l) const {
    std::vector<AttentionSums*> found;
    for (const auto& [value, slot] : l.writes)
      for (const auto& sum : block_.sums)
        if (sum->part().value == value) found.push_back(sum.get());
    return found;
  }

  void loop(const RowBlockPlan::Loop& l, const Position& position, const Columns& range, Scopes& rows,
            const AttentionThread& thread) {
    std::vector<std::vector<kernel::Var>> accumulators;  // by row
    for (auto& row : rows) {
      for (const int i : l.fixed) block_.emitter.emit(i, *row);
      accumulators.emplace_back();
      for (const int i : l.reductions)
        accumulators.back().push_back(
            b_.var({compute_type(block_.program[i].dtype), own_}, reduction_identity(b_, block_.program[i])));
    }
    b_.for_loop(range.lo, range.hi, span_, [&](Value column) {
      const std::vector<AttentionSums*> sums = sums_of(l);
      const ScorePosition here{position.outer, position.row, column},
          next{position.outer, position.row, column + span_};
      block_.start(l.reads, sums, here, AttentionSteps::Next{next, next.column < range.hi}, thread);
      Scopes points = block_.points(rows, here, l.reads, thread);
      for (int r = 0; r < own_; ++r) {
        const auto row = static_cast<std::size_t>(r);
        reduce(l, *points[row], accumulators[row]);
        for (const AttentionSums* sum : sums) block_.emitter.emit(sum->part().value, *points[row]);
        store(l, position, column, r, *rows[row], *points[row], thread);
      }
      for (AttentionSums* sum : sums) block_.add(*sum, rows, points, thread);
    });
    for (std::size_t k = 0; k < l.reductions.size(); ++k)
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const ElementwiseInstruction& reduction = block_.program[l.reductions[k]];
        const Value own = b_.reduce(reduction.op, b_.get(accumulators[r][k]));
        const Value combined = block_.reduce_row(reduction.op, own, thread);
        rows[r]->bind(l.reductions[k], block_.emitter.round(combined, reduction.dtype));
      }
  }

  void reduce(const RowBlockPlan::Loop& l, Scope& point, const std::vector<kernel::Var>& accumulators) {
    for (std::size_t k = 0; k < accumulators.size(); ++k) {
      const ElementwiseInstruction& reduction = block_.program[l.reductions[k]];
      Value value = b_.broadcast(block_.emitter.emit(reduction.args[0], point), own_);
      if (point.mask) value = b_.select(point.mask, value, b_.broadcast(reduction_identity(b_, reduction), own_));
      b_.set(accumulators[k], b_.apply(reduction.op, {b_.get(accumulators[k]), value}));
    }
  }

  /// If several blocks share a depth, only the first one stores.
  void store(const RowBlockPlan::Loop& l, const Position& position, Value column, int r, const Scope& row,
             Scope& point, const AttentionThread& thread) {
    if (l.stores.empty()) return;
    for (const ElementwiseStore* s : l.stores) block_.emitter.emit(s->value, point);
    b_.if_(row.mask && equal(position.depth_block, 0), [&] {
      const auto& parts = plan_.attention.parts;
      Scope there(block_.emitter,
                  {{parts.outer, position.outer, 1},
                   {{parts.row_dim}, position.row + thread.y * own_ + r, 1},
                   {{parts.columns_dim}, column + thread.x * own_, own_}},
                  point.mask, &point);
      for (const ElementwiseStore* s : l.stores) put(*s, there);
    });
  }

  void put(const ElementwiseStore& s, Scope& there) {
    block_.emitter.store(s.node, block_.program[s.value].dtype, s.form, block_.emitter.emit(s.value, there), there);
  }

  /// Stores values that do not vary along the columns, by one thread per row.
  void store_row(const Position& position, int r, Scope& row, const AttentionThread& thread) {
    if (plan_.row_blocks.row_stores().empty() && plan_.row_values.empty()) return;
    for (const ElementwiseStore* s : plan_.row_blocks.row_stores()) block_.emitter.emit(s->value, row);
    for (const auto& [value, buffer] : plan_.row_values) block_.emitter.emit(value, row);
    b_.if_(row.mask && equal(thread.x, 0) && equal(position.depth_block, 0), [&] {
      const auto& parts = plan_.attention.parts;
      const Value here = position.row + thread.y * own_ + r;
      Scope there(block_.emitter, {{parts.outer, position.outer, 1}, {{parts.row_dim}, here, 1}}, {}, &row);
      for (const ElementwiseStore* s : plan_.row_blocks.row_stores()) put(*s, there);
      for (const auto& [value, buffer] : plan_.row_values)
        b_.store(block_.context.buffer(buffer), position.outer * block_.row_count + here, *row.find(value));
    });
  }

  const AttentionPlan& plan_;
  const ColumnBounds& bounds_;
  AttentionBlock block_;
  kernel::Builder& b_;
  int span_, own_;
};

}  // namespace

KernelContext::Built lower_attention_rows(const AttentionPlan& plan) { return RowBlocks(plan).run(); }

}  // namespace lathe::gpu
