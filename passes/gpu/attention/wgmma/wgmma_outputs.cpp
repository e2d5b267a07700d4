#include "passes/gpu/attention/wgmma/wgmma_outputs.h"

#include <memory>

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/attention_known_rows.h"
#include "passes/gpu/attention/wgmma/wgmma_elementwise.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;
using kernel::Var;

namespace {

class WgmmaOutputs {
 public:
  WgmmaOutputs(const AttentionPlan& plan, bool over_rows, const WgmmaOutputTile& tile)
      : plan_(plan),
        parts_(wgmma_output_parts(plan, over_rows)),
        program_(plan.attention.program),
        tile_(tile),
        context_(over_rows ? "attention_columns_by_wgmma" : "attention_rows_by_wgmma",
                 over_rows ? KernelRole::attention_columns : KernelRole::attention_rows),
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
      streamed_.push_back(std::make_unique<StreamedOperand>(context_, *operand, false, WgmmaOutputTile::streamed,
                                                            static_cast<int>(*operand->size.value())));
    for (const auto* output : parts_.outputs)
      sums_.push_back(std::make_unique<WgmmaSums>(context_, plan.lowering, *output));
  }

  KernelContext::Built run() {
    declare();
    const AttentionProgram& attention = plan_.attention;
    rows_ = context_.dim(attention.rows), columns_ = context_.dim(attention.column_count);
    sequential_ = parts_.over_rows ? context_.dim(attention.parts.sequential) : b_.index(1);
    const Value blocks = b_.ceil_div(parts_.over_rows ? columns_ : rows_, tile_.blocks.positions());
    const Value outer = context_.dim(parts_.over_rows ? attention.parts.parallel : plan_.outer());
    const auto block = [&](Value i) {
      Value number = i % blocks;
      if (!parts_.over_rows && attention.bounds.upper) number = blocks - 1 - number;  // the longest first
      this->block(i / blocks, number * tile_.blocks.positions());
    };
    b_.for_loop(0, outer * blocks, 1, block, kernel::LoopKind::block_x);
    Dim depth(0);
    for (const auto* output : parts_.outputs) depth = depth + output->depth;
    context_.multiplies_by(Multiplier::wgmma);
    auto built = context_.finish();
    built.launch.flops = attention.flops(depth);
    return built;
  }

 private:
  struct Origin {
    Value outer, first, thread;  ///< outer: parallel outer index; first: first stationary position
  };
  /// The streamed positions: only those that may contribute, if all row blocks skip columns.
  struct Range {
    Value lo, hi;
  };

  void declare() {
    std::vector<const ElementwiseProgram*> programs = {&program_};
    for (const auto& operand : stationary_) programs.push_back(&operand->program());
    for (const auto& operand : streamed_) programs.push_back(&operand->program());
    for (const auto& sum : sums_) programs.push_back(&sum->part().epilogue);
    declare_buffers(context_, programs, plan_.lowering);
    for (const auto& [buffer, dtype] : buffers_of_known_rows(plan_)) context_.declare(buffer, dtype, true, false);
    emitter_.hoist(top_);
    for (const auto& operand : stationary_) operand->hoist();
    for (const auto& sum : sums_) sum->hoist();
    for (const auto& operand : streamed_) operand->map(plan_);
  }

  void block(Value outer, Value first) {
    for (const auto& operand : stationary_) operand->allocate("stationary");
    for (const auto& operand : streamed_) operand->allocate(plan_.tile.held, tile_.stages, "streamed");
    const auto thread = [&](Value t) {
      const Origin origin{outer, first, t};
      const Value count = parts_.over_rows ? columns_ : rows_;
      b_.if_(t < tile_.blocks.consumers(), [&] {
        for (const auto& operand : stationary_)
          operand->bring(outer * sequential_, first, count, t, tile_.blocks.consumers());
      });
      Range range{b_.index(0), parts_.over_rows ? rows_ : columns_};
      if (plan_.skips >= 0) range = parts_.over_rows ? rows_that_keep(origin) : columns_kept(origin);
      kernel::stage_pipeline(
          b_, tile_.stages, tile_.blocks.consumers(), [&] { sum(origin, range); }, tile_.blocks.at_once);
    };
    b_.for_loop(0, tile_.blocks.threads(), 1, thread, kernel::LoopKind::thread_x);
  }

  void sum(const Origin& origin, const Range& range) {
    for (const auto& sum : sums_) sum->declare();
    points_.declare();
    b_.for_loop(0, sequential_, 1, [&](Value s) {
      const Value outer = origin.outer * sequential_ + s;
      points_.enter(outer, origin.first, origin.thread, &top_);
      b_.for_loop(range.lo, range.hi, WgmmaOutputTile::streamed, [&](Value position) {
        const auto produce = [&](Value slot) {
          for (const auto& operand : streamed_) operand->copy(slot, outer, position);
        };
        kernel::pipeline_stage(b_, produce, [&](Value slot) {
          for (int first = 0; first < WgmmaOutputTile::streamed; first += tile_.at_once)
            part(origin, slot, position, first);
        });
      });
    });
    wait_sums(b_, registers());
    for (const auto& sum : sums_) sum->finish(origin.outer, origin.first, origin.thread);
  }

  /// Processes the positions of the tile from `first` on.
  void part(const Origin& origin, Value slot, Value position, int first) {
    points_.begin(position + first);
    for (std::size_t s = 0; s < stationary_.size(); ++s)
      multiply(b_, points_.scores()[s], *stationary_[s], origin.thread,
               streamed(parts_.streamed_operand(*parts_.scores[s])), slot, first);
    wait_sums(b_, registers());
    points_.make_weights(position + first);
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

  /// Each warp checks this on its own.
  Range rows_that_keep(const Origin& origin) {
    const ColumnBounds& bounds = plan_.attention.bounds;
    const Value row_blocks = b_.ceil_div(rows_, WgmmaOutputTile::streamed);
    Value lo = b_.index(0), hi = rows_;
    if (bounds.upper)
      lo = max(origin.first - context_.dim(*bounds.upper), 0) / WgmmaOutputTile::streamed * WgmmaOutputTile::streamed;
    if (bounds.lower) hi = max(min(origin.first + tile_.blocks.positions() - context_.dim(*bounds.lower), rows_), 0);
    const Value lane = origin.thread % kernel::warp_threads;
    const Var fine = b_.var(b_.constant_int(boolean, 1));
    b_.for_loop(0, sequential_, 1, [&](Value s) {
      b_.for_loop(lane, row_blocks, kernel::warp_threads, [&](Value row_block) {
        const Value row = row_block * WgmmaOutputTile::streamed;
        b_.set(fine, b_.get(fine) && left_out(origin.outer * sequential_ + s, row_block, row < lo || row >= hi));
      });
    });
    const Value all = reduce_in_warp(b_, ScalarOp::logical_and, b_.get(fine), lane, kernel::warp_threads);
    return {b_.select(all, lo, b_.index(0)), b_.select(all, hi, rows_)};
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
};

}  // namespace

KernelContext::Built lower_wgmma_outputs(const AttentionPlan& plan, bool over_rows, const WgmmaOutputTile& tile) {
  return WgmmaOutputs(plan, over_rows, tile).run();
}

}  // namespace lathe::gpu
