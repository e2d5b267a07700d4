#include <algorithm>
#include <optional>

#include "passes/cpu/attention/attention_products.h"
#include "passes/cpu/attention/blocks/column_blocks.h"
#include "passes/cpu/attention/blocks/row_block_loops.h"
#include "passes/cpu/attention/clear_sums.h"
#include "passes/cpu/attention/decode/decode_kernel.h"
#include "passes/cpu/attention/prefetch_rows.h"
#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/gemm/register_tile.h"
#include "passes/lowering/attention/attention_program.h"
#include "passes/lowering/attention/tile_skip_check.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

class AttentionKernel {
 public:
  AttentionKernel(const CpuContext& lowering, const Region& region, OutputProducts wanted)
      : lowering_(lowering),
        domain_(region.domain),
        context_("attention", KernelRole::attention),
        b_(context_.builder),
        attention_(attention_program(lowering, region, wanted)),
        emitter_(context_, program_, lowering.buffer_of),
        top_(emitter_, {}),
        lanes_(program_lanes(program_, lowering.vectors())),
        vectors_(lowering.vectors().count < lowering.tuned.products.fma.wide_tile_registers ? 3 : 4),
        tile_rows_(attention_.tiled ? tile_block : accumulators(lowering.vectors()) / vectors_),
        plan_(lowering.graph, program_, attention_.columns(), attention_.results(), RowBlockPlan::Memory::slots,
              bf16_results(attention_)),
        block_(block_columns(parts_, plan_, column_count(), block_rows(), 2 * tile_rows_, lowering.cpu)),
        products_(context_, lowering, attention_, tile()) {}

  KernelContext::Built run() {
    declare();
    hoist();
    const Value tasks = context_.dim(parts_.parallel), accumulated = context_.dim(parts_.accumulated);
    if (parts_.sums_over_rows()) {
      b_.parallel_for(0, tasks, 1, [&](Value task) {
        repeat(task * accumulated, accumulated,
               [&](Value result) { block_ > 0 ? blocks(result) : all_row_blocks(result); });
      });
    } else {
      const int step = row_blocks_of_a_task() * block_rows();
      const Value chunks = b_.ceil_div(rows_, step);
      b_.parallel_for(0, tasks * context_.dim(parts_.sequential) * chunks, 1, [&](Value task) {
        // With a causal mask the last rows have the most columns; they are scheduled first.
        const Value first = (chunks - 1 - task % chunks) * step;
        repeat(task / chunks * accumulated, accumulated,
               [&](Value outer) { row_blocks(outer, first, min(first + step, rows_)); });
      });
    }
    return finish();
  }

 private:
  /// Emits body(first + i) for each i below count, in order.
  void repeat(Value first, Value count, const std::function<void(Value)>& body) {
    if (parts_.accumulated.is(1)) return body(first);
    b_.for_loop(0, count, 1, [&](Value i) { body(first + i); });
  }

  int block_rows() const { return vectors_ * lanes_; }
  int row_blocks_of_a_task() const {
    const AttentionBlocks& blocks = lowering_.tuned.attention;
    if (!attention_.tiled) return blocks.row_blocks;
    const auto rows = (parts_.parallel * parts_.sequential * row_count().unnamed()).value();
    if (!rows) return blocks.tiled_row_blocks / 2;
    const auto each = static_cast<int>(
        std::min<std::int64_t>(*rows / (lowering_.cpu.cores * block_rows()), blocks.tiled_row_blocks));
    return std::max(each, blocks.row_blocks);
  }
  RegisterTile tile() const { return {parts_.compute, lanes_, tile_rows_, vectors_}; }
  int bytes() const { return lanes_ * static_cast<int>(size_in_bytes(parts_.compute)); }
  const Dim& row_count() const { return domain_[parts_.row_dim]; }
  const Dim& column_count() const { return domain_[parts_.columns_dim]; }

  void declare() {
    std::vector<const ElementwiseProgram*> programs = {&program_};
    for (const ElementwiseProgram* each : products_.programs()) programs.push_back(each);
    declare_buffers(context_, programs, lowering_);
    AttentionScratch scratch(context_, lowering_,
                             {.compute = parts_.compute,
                              .lanes = lanes_,
                              .block_rows = block_rows(),
                              .tile_rows = tile_rows_,
                              .columns = column_count().unnamed(),
                              .rows = block_ > 0 ? parts_.sequential * row_block_pitch() : Dim(block_rows())});
    products_.allocate_split_sums(scratch);
    std::vector<ScratchMatrix> slots;
    for (int s = 0; s < plan_.slots(); ++s) slots.push_back(scratch.slot(plan_.slot_dtype(s)));
    products_.allocate(scratch);
    const RowBlockLoops::Shape shape{parts_.outer, parts_.row_dim, parts_.columns_dim, lanes_};
    loops_.emplace(emitter_, plan_, shape, std::move(slots), bounds_.inside);
    rows_ = context_.dim(row_count());
    columns_ = context_.dim(column_count());
    const auto known = row_count().value();
    if (known && *known < block_rows()) return;  // too few rows to be worth prefetching
    products_.for_each_operand([&](OperandLoader& loader) {
      if (block_ == 0 || !loader.operand().by_column) prefetched_.add(loader);
    });
  }

  /// Emits everything that depends on no index before the parallel loop.
  void hoist() {
    emitter_.hoist(top_);
    products_.for_each_operand([](OperandLoader& loader) { loader.hoist(); });
  }

  /// Processes rows first .. last of one outer index, one row block at a time, each with all columns.
  void row_blocks(Value outer, Value first, Value last) {
    products_.stage(outer, columns_);
    const Value largest_score = bounds_.any() ? largest_score_of(outer, first, last) : Value{};
    b_.for_loop(first, last, block_rows(), [&](Value row) {
      row_block({.outer = outer, .row = row, .lo = b_.index(0), .hi = columns_}, largest_score, {});
    });
  }

  void all_row_blocks(Value result) {
    products_.over_rows([&](AttentionOutput& output) { output.clear(b_.index(0), columns_); });
    const Value sequential = context_.dim(parts_.sequential);
    b_.for_loop(0, sequential, 1, [&](Value s) { row_blocks(result * sequential + s, b_.index(0), rows_); });
    products_.over_rows(
        [&](AttentionOutput& output) { output.epilogue(result, b_.index(0), columns_, b_.index(0)); });
  }

  /// Distance, in rows, between the sums over columns of consecutive outer indices in blocks().
  Dim row_block_pitch() const { return row_count().unnamed() + Dim(block_rows()); }

  /// Processes all rows for one block of columns at a time; the sums over columns stay in memory between the blocks.
  void blocks(Value result) {
    const Value sequential = context_.dim(parts_.sequential), pitch = context_.dim(row_block_pitch());
    const auto each = [&](const std::function<void(Value outer, Value at)>& body) {
      b_.for_loop(0, sequential, 1, [&](Value s) { body(result * sequential + s, s * pitch); });
    };
    products_.over_columns([&](AttentionOutput& output) { output.clear(b_.index(0), sequential * pitch); });
    std::optional<kernel::Var> largest_score;
    if (bounds_.any()) {
      largest_score = b_.var(b_.constant(parts_.compute, 1));
      each([&](Value outer, Value) {
        b_.set(*largest_score, max(b_.get(*largest_score), largest_score_of(outer, b_.index(0), rows_)));
      });
    }
    const bool once = parts_.sequential.is(1);
    if (once) products_.stage(result, columns_);
    b_.for_loop(0, columns_, block_, [&](Value lo) {
      const Value hi = min(lo + block_, columns_);
      products_.over_rows([&](AttentionOutput& output) { output.clear(lo, hi); });
      each([&](Value outer, Value at) {
        if (!once) products_.stage(outer, columns_);
        b_.for_loop(0, rows_, block_rows(), [&](Value row) {
          row_block({.outer = outer, .row = row, .lo = lo, .hi = hi},
                    largest_score ? b_.get(*largest_score) : Value{}, at + row);
        });
      });
      products_.over_rows([&](AttentionOutput& output) { output.epilogue(result, lo, hi - lo, lo); });
    });
    each([&](Value outer, Value at) {
      products_.over_columns([&](AttentionOutput& output) { output.epilogue(outer, b_.index(0), rows_, at); });
    });
  }

  /// Returns a bound on all scores of rows first .. last.
  Value largest_score_of(Value outer, Value first, Value last) {
    return products_.largest_score(outer, {first, last}, columns_);
  }

  /// Processes the rows from all.row on for the columns of `all`. `at`: position of their sums over columns, set by
  /// blocks().
  void row_block(const RowBlockPosition& all, Value largest_score, std::optional<Value> at) {
    const Value count = min(rows_ - all.row, block_rows());
    RowBlockPosition position = all;
    if (bounds_.any()) {
      position = skip_columns(position, count, largest_score);
    } else {
      scores(position, count, [](RowBlockLoops::Rows&) {});
    }
    if (attention_.tiled) find_row_ends(position, vectors_);
    for (auto& output : products_.outputs()) {
      const ScratchMatrix& slot = loops_->slot(output->part().value);
      if (output->part().over_rows) {
        output->sum_over_rows(slot, position, count);
      } else {
        output->sum_over_columns(slot, position, count, at.value_or(b_.index(0)), at.has_value());
        if (!at) output->epilogue(position.outer, position.row, count, b_.index(0));
      }
    }
  }

  /// Computes the scores of a row block and runs the elementwise program on them; `then` receives the rows. A row
  /// block of few rows, as in short sequences, uses fewer vectors.
  void scores(const RowBlockPosition& row_block, Value count, const std::function<void(RowBlockLoops::Rows&)>& then) {
    const auto with = [&](int vectors) {
      RowBlockPosition position = row_block;
      find_row_ends(position, vectors);
      const auto multiply = [&] {
        for (auto& score : products_.scores()) {
          if (!attention_.tiled) score->pack_rows(position, vectors, rows_);
          score->multiply(loops_->slot(score->part().value), position, vectors, rows_, columns_, [&](Value column) {
            if (score == products_.scores()[0]) prefetched_.emit(position, column, tile_rows_, block_rows(), rows_);
          });
        }
      };
      block_ > 0 && bounds_.any() ? b_.if_(position.lo < position.hi, multiply) : multiply();
      RowBlockLoops::Rows rows = loops_->run(position, rows_, vectors, top_);
      loops_->store_rows(rows);
      for (auto& output : products_.outputs()) output->keep_divisors(emitter_, rows, columns_);
      then(rows);
    };
    if (!attention_.tiled) return few_or_all(1, count, with);
    for (auto& score : products_.scores()) score->pack_rows(row_block, vectors_, rows_);  // packs existing rows only
    few_or_all(tile_block / lanes_, count, with);
  }

  /// Emits with(vectors) for the smallest number of vectors that holds `count` rows of a row block, doubling up to
  /// all.
  void few_or_all(int vectors, Value count, const std::function<void(int)>& with) {
    const auto known = row_count().value();
    const int rows = vectors * lanes_;
    if (vectors >= vectors_ || (known && *known <= rows)) return with(std::min(vectors, vectors_));
    if (known && *known % block_rows() == 0) return with(vectors_);
    b_.if_(count <= rows, [&] { with(vectors); }, [&] { few_or_all(2 * vectors, count, with); });
  }

  /// Skips columns that contribute nothing. If the rows fail the tile-skip check, their scores are recomputed for all
  /// columns.
  RowBlockPosition skip_columns(const RowBlockPosition& all, Value count, Value largest_score) {
    const Value bounded = largest_score < score_limit;
    // Round to whole tiles of columns, so that no tile overlaps skipped columns.
    const auto tiles_below = [&](Value column) {
      return max(min(max(column, 0) / tile_rows_ * tile_rows_, all.hi), all.lo);
    };
    const auto tiles_above = [&](Value column) {
      return max(min(b_.round_up(max(column, 0), tile_rows_), all.hi), all.lo);
    };
    const auto where = [&](Value bound, Value otherwise) { return b_.select(bounded, bound, otherwise); };
    const kernel::Var lo =
        b_.var(bounds_.lower ? where(tiles_below(all.row + context_.dim(*bounds_.lower)), all.lo) : all.lo);
    const kernel::Var hi =
        b_.var(bounds_.upper ? where(tiles_above(all.row + count + context_.dim(*bounds_.upper)), all.hi) : all.hi);
    const kernel::Var skips = b_.var(bounded), again = b_.var(b_.constant_int(boolean, 1));
    b_.for_loop(0, 2, 1, [&](Value) {
      b_.if_(b_.get(again), [&] {
        b_.set(again, b_.constant_int(boolean, 0));
        scores({all.outer, all.row, b_.get(lo), b_.get(hi), b_.get(skips)}, count, [&](RowBlockLoops::Rows& rows) {
          const Value fine = rows_allow_skip(emitter_, bounds_, rows, largest_score);
          b_.if_(b_.get(skips) && kernel::logical_not(fine), [&] {
            b_.set(again, b_.constant_int(boolean, 1));
            b_.set(skips, b_.constant_int(boolean, 0));
            b_.set(lo, all.lo);
            b_.set(hi, all.hi);
          });
        });
      });
    });
    return {all.outer, all.row, b_.get(lo), b_.get(hi), b_.get(skips)};
  }

  /// Finds the end of the columns for each vector of rows. Columns past the diagonal are not needed, except those
  /// that the matmuls read as part of the same tile.
  void find_row_ends(RowBlockPosition& position, int vectors) {
    if (!bounds_.upper || !position.skips || vectors == 1) return;
    const Value diagonal = position.row + context_.dim(*bounds_.upper);
    for (int v = 0; v + 1 < vectors; ++v) {
      const int rows = (v + 1) * lanes_, read = (rows + tile_rows_ - 1) / tile_rows_ * tile_rows_;
      const Value end = b_.round_up(max(diagonal + read, 0), tile_rows_);
      position.row_ends.push_back(b_.select(position.skips, max(min(end, position.hi), position.lo), position.hi));
    }
    position.row_ends.push_back(position.hi);
    position.inside = max(min(diagonal + 1, position.row_ends[0]), position.lo);
  }

  KernelContext::Built finish() {
    Dim depths(0);
    for (const auto& score : products_.scores()) depths = depths + score->part().depth;
    for (const auto& output : products_.outputs()) depths = depths + output->part().depth;
    const Dim rows = row_count().unnamed(), columns = column_count().unnamed();
    context_.multiplies_by(products_.multiplier(), missed_tiles(attention_));
    auto built = context_.finish();
    built.launch.flops = attention_.flops(depths);
    const int chunk = row_blocks_of_a_task() * block_rows();
    const Dim task_rows = parts_.sums_over_rows() ? parts_.sequential * rows
                                                  : Dim(std::min<std::int64_t>(chunk, rows.value().value_or(chunk)));
    built.launch.work = parts_.accumulated * task_rows * columns * (depths + Dim(score_work));
    return built;
  }

  const CpuContext& lowering_;
  const Shape& domain_;
  KernelContext context_;
  kernel::Builder& b_;
  AttentionProgram attention_;
  const ElementwiseProgram& program_ = attention_.program;
  const AttentionParts& parts_ = attention_.parts;
  const ColumnBounds& bounds_ = attention_.bounds;
  ElementwiseEmitter emitter_;
  Scope top_;
  int lanes_, vectors_, tile_rows_;
  RowBlockPlan plan_;
  int block_;  ///< columns per block; 0: all columns
  AttentionProducts products_;
  std::optional<RowBlockLoops> loops_;
  PrefetchRows prefetched_;
  Value rows_, columns_;
};

}  // namespace

std::vector<KernelContext::Built> lower_attention(const CpuContext& context, const Region& region) {
  if (auto few = lower_decode(context, region)) return std::move(*few);
  const AttentionParts parts = attention_parts(context, region, region_program(context.graph, context.plan, region));
  // A sum over all outer dims leaves a single task. In that case the first kernel sums over columns, parallel over
  // rows. The second one sums over rows, parallel over outer dims, and recomputes the scores.
  const bool two = parts.sums_over_rows() && parts.parallel.is(1) && !parts.accumulated.is(1);
  std::vector<KernelContext::Built> built = clear_sums_over_nothing(context, region);
  for (const OutputProducts wanted :
       two ? std::vector{OutputProducts::over_columns, OutputProducts::over_rows} : std::vector{OutputProducts::all})
    built.push_back(AttentionKernel(context, region, wanted).run());
  return built;
}

}  // namespace lathe::cpu
