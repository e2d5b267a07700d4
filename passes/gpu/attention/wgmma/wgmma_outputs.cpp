#include "passes/gpu/attention/wgmma/wgmma_outputs.h"

#include <memory>

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/attention_known_rows.h"
#include "passes/gpu/attention/wgmma/ordered_sums.h"
#include "passes/gpu/attention/wgmma/wgmma_elementwise.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;
using kernel::Var;

namespace {

/// Bytes of the rows of the heads whose blocks take turns, and how many heads at most: most of the 50 MB of L2 of an
/// H100 or H200, and about one head for each of its multiprocessors.
constexpr std::int64_t bytes_of_group = 32 << 20, most_heads = 128;

class WgmmaOutputs {
 public:
  WgmmaOutputs(const AttentionPlan& plan, WgmmaOutputParts parts, const WgmmaOutputTile& tile)
      : plan_(plan),
        parts_(std::move(parts)),
        program_(plan.attention.program),
        tile_(tile),
        context_(parts_.ordered     ? "attention_gradients_by_wgmma"
                 : parts_.over_rows ? "attention_columns_by_wgmma"
                                    : "attention_rows_by_wgmma",
                 parts_.ordered     ? KernelRole::attention_gradients
                 : parts_.over_rows ? KernelRole::attention_columns
                                    : KernelRole::attention_rows),
        b_(context_.builder),
        emitter_(context_, program_, plan.lowering.buffer_of),
        top_(emitter_, {}),
        points_(plan, context_, emitter_, parts_, tile) {
    program_.stores.clear();
    for (const auto* score : parts_.scores)
      stationary_.push_back(std::make_unique<StationaryOperand>(context_, plan.lowering,
                                                                parts_.stationary_operand(*score), score->depth,
                                                                plan.tile, tile.blocks.positions()));
    for (const AttentionOperand* operand : parts_.streamed)
      streamed_.push_back(std::make_unique<StreamedOperand>(context_, *operand, false, tile.rows,
                                                            static_cast<int>(*operand->size.value())));
    for (const auto* output : parts_.outputs)
      sums_.push_back(std::make_unique<WgmmaSums>(context_, plan.lowering, *output));
  }

  /// `memory`: of the sums that blocks add to in order.
  KernelContext::Built run(const OrderedSums::Memory& memory = {}) {
    if (parts_.ordered)
      ordered_ = std::make_unique<OrderedSums>(context_, plan_, tile_, memory, *stationary_[parts_.ordered_score]);
    declare();
    const AttentionProgram& attention = plan_.attention;
    rows_ = context_.dim(attention.rows), columns_ = context_.dim(attention.column_count);
    sequential_ = parts_.over_rows ? context_.dim(attention.parts.sequential) : b_.index(1);
    Value blocks = b_.ceil_div(parts_.over_rows ? columns_ : rows_, tile_.blocks.positions());
    if (ordered_) blocks = max(blocks, 1);  // without columns, it writes the sums over them
    const Value outer = context_.dim(parts_.over_rows ? attention.parts.parallel : plan_.outer());
    const auto block = [&](Value i) {
      if (ordered_) return block_of_heads(i, blocks, outer);
      Value number = i % blocks;
      if (!parts_.over_rows && attention.bounds.upper) number = blocks - 1 - number;  // the longest first
      this->block(i / blocks, number, blocks);
    };
    b_.for_loop(0, outer * blocks, 1, block, kernel::LoopKind::block_x);
    Dim depth = parts_.ordered ? parts_.ordered->depth : Dim(0);
    for (const auto* output : parts_.outputs) depth = depth + output->depth;
    context_.multiplies_by(Multiplier::wgmma);
    auto built = context_.finish();
    built.launch.flops = attention.flops(depth);
    return built;
  }

 private:
  struct Origin {
    Value outer, block, first, thread;  ///< outer: parallel outer index; first: first stationary position
  };
  /// The streamed positions: only those that may contribute, if all row blocks skip columns.
  struct Range {
    Value lo, hi;
  };

  /// A group of heads takes turns in the order of the blocks: first the first block of each head, then the second
  /// one. A block adds to its rows after the block before it, which then has started earlier. The rows of a group
  /// stay in L2.
  void block_of_heads(Value i, Value blocks, Value outer) {
    std::int64_t of_row = static_cast<std::int64_t>(sizeof(float)) * *parts_.ordered->depth.value();
    for (const AttentionOperand* operand : parts_.streamed) of_row += 2 * *operand->size.value();
    const Value fit = b_.index(bytes_of_group / of_row) / max(rows_ * sequential_, 1);
    const Value group = min(max(fit, 1), most_heads);
    const Value of_group = blocks * group, first = i / of_group * group;
    const Value heads = min(outer - first, group), inside = i % of_group;
    block(first + inside % heads, inside / heads, blocks);
  }

  void declare() {
    std::vector<const ElementwiseProgram*> programs = {&program_};
    for (const auto& operand : stationary_) programs.push_back(&operand->program());
    for (const auto& operand : streamed_) programs.push_back(&operand->program());
    for (const auto& sum : sums_) programs.push_back(&sum->part().epilogue);
    declare_buffers(context_, programs, plan_.lowering);
    for (const auto& [buffer, dtype] : buffers_of_known_rows(plan_)) context_.declare(buffer, dtype, true, false);
    if (ordered_) ordered_->declare_buffers();
    emitter_.hoist(top_);
    for (const auto& operand : stationary_) operand->hoist();
    for (const auto& sum : sums_) sum->hoist();
    for (const auto& operand : streamed_) operand->map(plan_);
  }

  void block(Value outer, Value number, Value blocks) {
    for (const auto& operand : stationary_) operand->allocate("stationary");
    for (const auto& operand : streamed_) operand->allocate(plan_.tile.held, tile_.stages, "streamed");
    if (ordered_) ordered_->allocate();
    const auto thread = [&](Value t) {
      const Origin origin{outer, number, number * tile_.blocks.positions(), t};
      b_.if_(t < tile_.blocks.consumers(), [&] { bring(origin); });
      const auto pipeline = [&](const std::function<void()>& body) {
        kernel::stage_pipeline(b_, tile_.stages, tile_.blocks.consumers(), body, tile_.blocks.at_once);
      };
      if (ordered_) {
        const Value skips = plan_.skips >= 0 ? all_left_out(origin, {b_.index(0), b_.index(0)})  // in all rows
                                             : b_.constant_int(boolean, 0);
        const BlockOrder order(context_, plan_, tile_, skips, blocks);
        const BlockOrder::Tiles tiles = order.tiles(number);
        return pipeline([&] { sum_in_order(origin, order, tiles); });
      }
      Range range{b_.index(0), parts_.over_rows ? rows_ : columns_};
      if (plan_.skips >= 0) range = parts_.over_rows ? rows_that_keep(origin) : columns_kept(origin);
      pipeline([&] { sum(origin, range); });
    };
    b_.for_loop(0, tile_.blocks.threads(), 1, thread, kernel::LoopKind::thread_x);
  }

  void bring(const Origin& origin) {
    const Value count = parts_.over_rows ? columns_ : rows_;
    const int threads = tile_.blocks.consumers();
    const auto bring_all = [&] {
      for (const auto& operand : stationary_)
        operand->bring(origin.outer * sequential_, origin.first, count, origin.thread, threads);
    };
    const auto clear_all = [&] {
      for (const auto& operand : stationary_) operand->clear(origin.thread, threads);
    };
    if (ordered_ && !plan_.attention.column_count.value())
      b_.if_(count > 0, bring_all, clear_all);
    else
      bring_all();
  }

  void declare_registers() {
    for (const auto& sum : sums_) sum->declare();
    points_.declare();
    if (ordered_) ordered_->declare();
  }

  void finish(const Origin& origin) {
    wait_sums(b_, registers());
    for (const auto& sum : sums_) sum->finish(origin.outer, origin.first, origin.thread);
  }

  void produce(Value slot, Value outer, Value position) const {
    for (const auto& operand : streamed_) operand->copy(slot, outer, position);
  }

  void sum(const Origin& origin, const Range& range) {
    declare_registers();
    b_.for_loop(0, sequential_, 1, [&](Value s) {
      const Value outer = origin.outer * sequential_ + s;
      points_.enter(outer, origin.first, origin.thread, &top_);
      b_.for_loop(range.lo, range.hi, WgmmaOutputTile::streamed, [&](Value position) {
        kernel::pipeline_stage(
            b_, [&](Value slot) { produce(slot, outer, position); },
            [&](Value slot) { all_parts(origin, slot, position); });
      });
    });
    finish(origin);
  }

  /// Processes the last rows first: all blocks contribute to these if there is an upper bound, so each one waits only
  /// for the additions of the one before it, and not until that one reaches the same rows.
  void sum_in_order(const Origin& origin, const BlockOrder& order, const BlockOrder::Tiles& tiles) {
    declare_registers();
    const Value count = max(tiles.end - tiles.first, 0);
    b_.for_loop(0, sequential_, 1, [&](Value s) {
      const Value outer = origin.outer * sequential_ + s;
      points_.enter(outer, origin.first, origin.thread, &top_);
      b_.for_loop(0, count, 1, [&](Value i) {
        const Value position = (tiles.end - 1 - i) * tile_.rows, number = s * count + i;
        const auto consume = [&](Value slot) {
          all_parts(origin, slot, position, number);
          ordered_->multiply(origin.thread, number);
          wait_sums(b_, registers());
        };
        kernel::pipeline_stage(b_, [&](Value slot) { produce(slot, outer, position); }, consume);
        ordered_->add(outer, position, order.rank(origin.block, position), origin.thread);
      });
    });
    finish(origin);
  }

  void all_parts(const Origin& origin, Value slot, Value position, Value number = {}) {
    for (int first = 0; first < tile_.rows; first += tile_.at_once) part(origin, slot, position, first, number);
  }

  /// Processes the positions of the tile from `first` on.
  void part(const Origin& origin, Value slot, Value position, int first, Value number) {
    points_.begin(position + first);
    for (std::size_t s = 0; s < stationary_.size(); ++s)
      multiply(b_, points_.scores()[s], *stationary_[s], origin.thread,
               streamed(parts_.streamed_operand(*parts_.scores[s])), slot, first);
    wait_sums(b_, registers());
    points_.make_weights(position + first);
    if (ordered_) ordered_->keep(points_.held_weights(parts_.ordered_weights), origin.thread, number, first);
    for (std::size_t e = 0; e < sums_.size(); ++e) {
      const StreamedOperand& other = streamed(parts_.outputs[e]->other);
      sums_[e]->add(points_.weights(e), [&](int depth) { return other.right(slot, first, depth, true); });
    }
  }

  const StreamedOperand& streamed(const AttentionOperand& operand) const {
    return *streamed_[parts_.streamed_number(operand)];
  }
  std::vector<Var> registers() const {
    std::vector<Var> all = points_.scores();
    for (const auto& sum : sums_) all.insert(all.end(), sum->vars().begin(), sum->vars().end());
    if (ordered_) all.push_back(ordered_->sums());
    return all;
  }

  /// Returns whether a block of 64 rows has skipped columns; true if there is no such block.
  Value left_out(Value outer, Value row_block, Value there) {
    const Value row_blocks = context_.dim(plan_.blocks_of(plan_.attention.rows));
    const Value left_out = b_.load(context_.buffer(plan_.skips), outer * row_blocks + row_block, 1, there);
    return left_out || kernel::logical_not(there);
  }

  Range columns_kept(const Origin& origin) {
    const ColumnBounds& bounds = plan_.attention.bounds;
    Value all = b_.constant_int(boolean, 1), lo = b_.index(0), hi = columns_;
    for (int row = 0; row < tile_.blocks.positions(); row += WgmmaOutputTile::streamed)
      all =
          all && left_out(origin.outer, (origin.first + row) / WgmmaOutputTile::streamed, origin.first + row < rows_);
    if (bounds.lower)
      lo = max(origin.first + context_.dim(*bounds.lower), 0) / WgmmaOutputTile::streamed * WgmmaOutputTile::streamed;
    if (bounds.upper)
      hi = max(min(origin.first + tile_.blocks.positions() + context_.dim(*bounds.upper), columns_), 0);
    return {b_.select(all, lo, b_.index(0)), b_.select(all, hi, columns_)};
  }

  Range rows_that_keep(const Origin& origin) {
    const ColumnBounds& bounds = plan_.attention.bounds;
    Value lo = b_.index(0), hi = rows_;
    if (bounds.upper)
      lo = max(origin.first - context_.dim(*bounds.upper), 0) / WgmmaOutputTile::streamed * WgmmaOutputTile::streamed;
    if (bounds.lower) hi = max(min(origin.first + tile_.blocks.positions() - context_.dim(*bounds.lower), rows_), 0);
    const Value all = all_left_out(origin, {lo, hi});
    return {b_.select(all, lo, b_.index(0)), b_.select(all, hi, rows_)};
  }

  /// Returns whether all blocks of rows outside of the range have skipped columns. Each warp checks this on its own.
  Value all_left_out(const Origin& origin, const Range& except) {
    const Value row_blocks = b_.ceil_div(rows_, WgmmaOutputTile::streamed);
    const Value lane = origin.thread % kernel::warp_threads;
    const Var fine = b_.var(b_.constant_int(boolean, 1));
    b_.for_loop(0, sequential_, 1, [&](Value s) {
      b_.for_loop(lane, row_blocks, kernel::warp_threads, [&](Value row_block) {
        const Value row = row_block * WgmmaOutputTile::streamed;
        b_.set(fine, b_.get(fine) &&
                         left_out(origin.outer * sequential_ + s, row_block, row < except.lo || row >= except.hi));
      });
    });
    return reduce_in_warp(b_, ScalarOp::logical_and, b_.get(fine), lane, kernel::warp_threads);
  }

  const AttentionPlan& plan_;
  WgmmaOutputParts parts_;
  ElementwiseProgram program_;  ///< without stores
  WgmmaOutputTile tile_;
  KernelContext context_;
  kernel::Builder& b_;
  ElementwiseEmitter emitter_;
  ElementwiseEmitter::Scope top_;
  Value rows_, columns_, sequential_;
  WgmmaElementwise points_;
  std::vector<std::unique_ptr<StationaryOperand>> stationary_;  ///< by score
  std::vector<std::unique_ptr<StreamedOperand>> streamed_;
  std::vector<std::unique_ptr<WgmmaSums>> sums_;  ///< by output product
  std::unique_ptr<OrderedSums> ordered_;
};

}  // namespace

KernelContext::Built lower_wgmma_outputs(const AttentionPlan& plan, bool over_rows, const WgmmaOutputTile& tile) {
  return WgmmaOutputs(plan, wgmma_output_parts(plan, over_rows), tile).run();
}

std::vector<KernelContext::Built> lower_wgmma_gradients(const AttentionPlan& plan, const WgmmaOutputTile& tile) {
  const auto memory = OrderedSums::Memory::of(plan, tile);
  std::vector<KernelContext::Built> built;
  built.push_back(lower_clear_turns(plan, memory, tile));
  const WgmmaOutputParts parts = wgmma_gradient_parts(plan).parts;
  built.push_back(WgmmaOutputs(plan, parts, tile).run(memory));
  built.push_back(lower_ordered_totals(plan, memory, tile, *parts.ordered));
  return built;
}

}  // namespace lathe::gpu
