#include "passes/gpu/attention/wgmma/wgmma_attention.h"

#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/pipeline/turn.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/attention_tile_skip.h"
#include "passes/gpu/attention/wgmma/wgmma_softmax.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/attention/tile_skip_check.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Scopes = WgmmaSoftmax::Scopes;

namespace {

class WgmmaAttention {
 public:
  WgmmaAttention(const AttentionPlan& plan, const WgmmaAttentionTile& tile)
      : plan_(plan),
        bounds_(plan.attention.bounds),
        score_(plan.attention.parts.scores[0]),
        tile_(tile),
        context_(tile.in_turns() ? "attention_by_wgmma_in_turns" : "attention_by_wgmma", KernelRole::attention),
        b_(context_.builder),
        emitter_(context_, plan.attention.program, plan.lowering.buffer_of),
        top_(emitter_, {}),
        queries_(context_, plan.lowering, score_.rows, score_.depth, plan.tile, tile.blocks.positions()),
        keys_(context_, score_.columns, false, tile.columns, tile.depth),
        values_(context_, plan.attention.parts.outputs[0].other, true, tile.values, tile.columns),
        result_(context_, plan.lowering, plan.attention.parts.outputs[0]),
        softmax_(plan, context_, emitter_, tile.columns) {
    emitter_.round_at_the_end();
  }

  KernelContext::Built run() {
    declare();
    const Value row_blocks = b_.ceil_div(context_.dim(plan_.attention.rows), tile_.blocks.positions());
    const auto block = [&](Value i) {
      Value row_block = i % row_blocks;
      if (bounds_.upper) row_block = row_blocks - 1 - row_block;  // the longest first
      this->block(i / row_blocks, row_block * tile_.blocks.positions());
    };
    b_.for_loop(0, context_.dim(plan_.outer()) * row_blocks, 1, block, LoopKind::block_x);
    context_.multiplies_by(Multiplier::wgmma);
    auto built = context_.finish();
    built.launch.flops = plan_.attention.flops(score_.depth + result_.part().depth);
    return built;
  }

 private:
  struct Position {
    Value outer, row, thread;
  };

  void declare() {
    declare_buffers(context_,
                    {&plan_.attention.program, &queries_.program(), &keys_.program(), &values_.program(),
                     &result_.part().epilogue},
                    plan_.lowering);
    for (const auto& maximum : plan_.maxima) context_.declare(maximum.buffer, plan_.tile.compute, true, false);
    emitter_.hoist(top_);
    queries_.hoist();
    result_.hoist();
    keys_.map(plan_);
    values_.map(plan_);
  }

  void block(Value outer, Value row) {
    queries_.allocate("queries");
    keys_.allocate(plan_.tile.held, tile_.stages, "keys");
    values_.allocate(plan_.tile.held, tile_.stages, "values");
    const auto of_warps = [&](DType dtype, const char* name) {
      return b_.alloc(dtype, tile_.blocks.threads() / kernel::warp_threads, kernel::Space::shared, name);
    };
    if (bounds_.any()) votes_ = of_warps(boolean, "votes"), largest_ = of_warps(plan_.tile.compute, "largest");
    const auto thread = [&](Value t) {
      const Position position{outer, row, t};
      b_.if_(t < tile_.blocks.consumers(),
             [&] { queries_.bring(outer, row, context_.dim(plan_.attention.rows), t, tile_.blocks.consumers()); });
      if (!bounds_.any())
        return kernel::stage_pipeline(
            b_, tile_.stages, tile_.blocks.consumers(), [&] { all_columns(position); }, tile_.blocks.at_once);
      const SkippableColumns first =
          skippable_columns(context_, plan_, position.outer, position.row, tile_.blocks.positions(), tile_.columns,
                            t % kernel::warp_threads);
      b_.if_(equal(t % kernel::warp_threads, 0),
             [&] { b_.store(largest_, t / kernel::warp_threads, first.largest_score); });
      kernel::stage_pipeline(
          b_, tile_.stages, tile_.blocks.consumers(), [&] { some_columns(position, first); }, tile_.blocks.at_once);
    };
    b_.for_loop(0, tile_.blocks.threads(), 1, thread, LoopKind::thread_x);
  }

  void all_columns(const Position& position) {
    declare_registers();
    columns(position, b_.index(0), context_.dim(plan_.attention.column_count));
    result_.finish(position.outer, position.row, position.thread);
  }

  void some_columns(const Position& position, const SkippableColumns& first) {
    declare_registers();
    go_through(b_, first, context_.dim(plan_.attention.column_count), [&](Value lo, Value hi) {
      Scopes rows = columns(position, lo, hi);
      const Value largest = b_.load(largest_, position.thread / kernel::warp_threads);
      const Value fine = rows_allow_skip(emitter_, bounds_, rows, largest);
      return from_consumers(b_, in_all_threads(fine, position.thread));
    });
    result_.finish(position.outer, position.row, position.thread);
  }

  /// Returns whether `fine` holds in all threads that multiply.
  Value in_all_threads(Value fine, Value thread) {
    const Value warp = reduce_with_partners(b_, ScalarOp::logical_and, fine, thread, kernel::warp_threads);
    b_.if_(equal(thread % kernel::warp_threads, 0), [&] { b_.store(votes_, thread / kernel::warp_threads, warp); });
    b_.barrier();
    Value all = b_.load(votes_, 0);
    for (int i = 1; i < tile_.blocks.consumers() / kernel::warp_threads; ++i) all = all && b_.load(votes_, i);
    b_.barrier();  // the memory is reused
    return all;
  }

  void declare_registers() {
    scores_ = zero_vectors(b_, {f32, tile_.columns / 2}, 1)[0];
    result_.declare();
    softmax_.declare();
  }
  Scopes columns(const Position& position, Value lo, Value hi) {
    Scopes rows = softmax_.rows(position.outer, position.row, position.thread, &top_);
    result_.clear();
    softmax_.begin(rows);
    tiles(rows, position, lo, hi);
    result_.scale(ScalarOp::mul, softmax_.finish(rows, position.thread));
    if (result_.part().divisor) divide(rows);
    store_rows(rows, position);
    return rows;
  }

  /// A stage has the keys of a tile and the values of the tile before. The first one has no values, the last one no
  /// keys.
  void tiles(Scopes& rows, const Position& position, Value lo, Value hi) {
    const Value count = b_.ceil_div(hi - lo, tile_.columns), once = min(count, 1);
    const auto keys = [&](Value column) {
      return [=, this](Value slot) { keys_.copy(slot, position.outer, column); };
    };
    const auto first = [&](Value slot) {
      start_scores(position, slot);
      wait_sums(b_, {&scores_, 1});
      weights(rows, position, lo);
      softmax_.round_weights();
    };
    b_.for_loop(0, once, 1, [&](Value) { kernel::pipeline_stage(b_, keys(lo), first); });
    b_.for_loop(1, count, 1, [&](Value i) {
      const Value column = lo + i * tile_.columns;
      const auto produce = [&](Value slot) {
        keys(column)(slot);
        values_.copy(slot, position.outer, column - tile_.columns);
      };
      const auto consume = [&](Value slot) {
        turn(b_, [&] {
          start_scores(position, slot);
          commit_sums(b_);
          start_result(slot);
        });
        wait_sums(b_, {&scores_, 1}, 1);
        const std::vector<Value> factors = weights(rows, position, column);
        wait_ended_sums(b_, result_.vars());
        softmax_.round_weights();
        result_.scale(ScalarOp::mul, factors);
      };
      kernel::pipeline_stage(b_, produce, consume);
    });
    const auto last = [&](Value slot) {
      start_result(slot);
      wait_sums(b_, result_.vars());
    };
    const Value end = lo + (count - 1) * tile_.columns;
    b_.for_loop(0, once, 1, [&](Value) {
      kernel::pipeline_stage(b_, [&](Value slot) { values_.copy(slot, position.outer, end); }, last);
    });
  }

  void start_scores(const Position& position, Value slot) {
    multiply(b_, scores_, queries_, position.thread, keys_, slot, 0);
  }
  /// Computes the weights of the tile's scores; returns the factors of the sums before.
  std::vector<Value> weights(Scopes& rows, const Position& position, Value column) {
    return softmax_.take(rows, {position.outer, position.row, column}, b_.get(scores_), position.thread);
  }
  void start_result(Value slot) {
    for (int part = 0; part < tile_.columns / kernel::wgmma_depth; ++part)
      result_.add(softmax_.weights(part),
                  [&](int depth) { return values_.right(slot, depth, part * kernel::wgmma_depth); });
  }

  void divide(Scopes& rows) {
    std::vector<Value> reciprocals;
    const Value some = context_.dim(plan_.attention.column_count) > 0;
    for (auto& row : rows)
      reciprocals.push_back(
          b_.constant(f32, 1) /
          b_.select(some, b_.cast(emitter_.emit(*result_.part().divisor, *row), f32), b_.constant(f32, 1)));
    result_.scale(ScalarOp::mul, reciprocals);
  }

  /// Stores values that do not vary along the columns, by one thread per row.
  void store_rows(Scopes& rows, const Position& position) {
    const auto& stores = plan_.row_blocks.row_stores();
    if (stores.empty()) return;
    const AttentionParts& parts = plan_.attention.parts;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const ElementwiseStore* s : stores) emitter_.emit(s->value, *rows[r]);
      b_.if_(rows[r]->mask && equal(WgmmaPositions::first_column(position.thread), 0), [&] {
        const Value row = position.row + WgmmaPositions::first_row(position.thread) +
                          static_cast<int>(r) * WgmmaPositions::row_step;
        WgmmaSoftmax::Scope there(emitter_, {{parts.outer, position.outer, 1}, {{parts.row_dim}, row, 1}}, {},
                                  rows[r].get());
        for (const ElementwiseStore* s : stores)
          emitter_.store(s->node, emitter_.program()[s->value].dtype, s->form, emitter_.emit(s->value, there), there);
      });
    }
  }

  const AttentionPlan& plan_;
  const ColumnBounds& bounds_;
  const AttentionParts::Score& score_;
  WgmmaAttentionTile tile_;
  KernelContext context_;
  kernel::Builder& b_;
  ElementwiseEmitter emitter_;
  ElementwiseEmitter::Scope top_;
  StationaryOperand queries_;
  StreamedOperand keys_, values_;
  WgmmaSums result_;
  WgmmaSoftmax softmax_;
  kernel::Buffer votes_, largest_;  ///< of each warp; the largest score is only needed after the loops
  Var scores_;
};

}  // namespace

KernelContext::Built lower_wgmma_attention(const AttentionPlan& plan, const WgmmaAttentionTile& tile) {
  return WgmmaAttention(plan, tile).run();
}

}  // namespace lathe::gpu
