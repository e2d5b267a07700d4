#include "passes/gpu/attention/wgmma/ordered_sums.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/grid/block_order.h"
#include "ir/kernel/intrinsics/gpu/pipeline/hand_over.h"
#include "passes/gpu/attention/block/attention_block_output.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;

namespace {

constexpr int vector = 4;  // f32 elements that are moved at a time

/// Returns an upper bound on the number of row tiles. Each has a turn.
Dim tiles_of(const AttentionPlan& plan, const WgmmaOutputTile& tile) {
  const auto rows = plan.attention.rows.value();
  return rows ? Dim((*rows + tile.rows - 1) / tile.rows) : plan.attention.rows;
}
/// Whether a warpgroup has half of the rows of a tile; otherwise half of the depth.
bool by_rows(const WgmmaOutputTile& tile) { return tile.rows > kernel::wgmma_rows; }

/// Returns the offset of a vector of a thread's sums among those of a tile; vectors are numbered over both
/// warpgroups.
Value vector_at(Value number, Value own) { return (number * kernel::warpgroup_threads + own) * vector; }

Dim turns_of(const AttentionPlan& plan, const WgmmaOutputTile& tile) {
  return plan.outer() * tiles_of(plan, tile) + Dim(1);
}

}  // namespace

BlockOrder::BlockOrder(KernelContext& context, const AttentionPlan& plan, const WgmmaOutputTile& tile, Value skips,
                       Value blocks)
    : context_(context),
      b_(context.builder),
      plan_(plan),
      bounds_(plan.attention.bounds),
      rows_(tile.rows),
      columns_(tile.blocks.positions()),
      skips_(skips),
      last_(blocks - 1) {
  // Without skipped columns, below all rows.
  if (bounds_.lower) lower_ = b_.select(skips, context.dim(*bounds_.lower), 0 - context.dim(plan.attention.rows));
}

/// The blocks of a tile are those between the bounds of its rows, or the nearest one. Both ends grow with the rows,
/// so the tiles of a block follow each other.
BlockOrder::Tiles BlockOrder::tiles(Value block) const {
  const Value all = b_.ceil_div(context_.dim(plan_.attention.rows), rows_), none = b_.index(0);
  const Value column = block * columns_;
  Value first = none, end = all;
  if (bounds_.upper) {
    first = max(column - context_.dim(*bounds_.upper), 0) / rows_;
    // The blocks of a tile are not empty, even if the lower bound is above the upper one.
    if (bounds_.lower) first = min(first, b_.ceil_div(max(column - context_.dim(*bounds_.lower), 0), rows_));
    first = b_.select(equal(block, 0), none, first);
  }
  if (bounds_.lower) {
    const Value after = max(column + columns_ - context_.dim(*bounds_.lower), 0);
    end = b_.select(block < last_, min(b_.ceil_div(after, rows_), all), all);
  }
  return {b_.select(skips_, first, none), b_.select(skips_, end, all)};
}

/// Block n has a tile if n is at least the block of the first column that the lower bound leaves to the tile's rows.
Value BlockOrder::rank(Value block, Value position) const {
  if (!bounds_.lower) return block;
  return block - min(max(position + lower_, 0) / columns_, last_);
}

OrderedSums::Memory OrderedSums::Memory::of(const AttentionPlan& plan, const WgmmaOutputTile& tile) {
  const std::int64_t of_tile = std::int64_t{tile.blocks.consumers()} * tile.ordered_lanes;
  const auto rows = plan.attention.rows.value();
  const Dim sums = rows ? tiles_of(plan, tile) * Dim(of_tile)
                        : (plan.attention.rows + Dim(tile.rows - 1)) * Dim(of_tile / tile.rows);
  return {plan.lowering.workspace(f32, plan.outer() * sums, "sums over columns"),
          plan.lowering.workspace(DType::i32, turns_of(plan, tile), "turns of blocks")};
}

OrderedSums::OrderedSums(KernelContext& context, const AttentionPlan& plan, const WgmmaOutputTile& tile,
                         const Memory& memory, const StationaryOperand& columns)
    : context_(context), b_(context.builder), plan_(plan), tile_(tile), memory_(memory), columns_(columns) {}

void OrderedSums::declare_buffers() {
  context_.declare(memory_.sums, f32, true, true);
  context_.declare(memory_.turns, DType::i32, true, true);
}

void OrderedSums::allocate() {
  // Two tiles: a warpgroup may store those of the next tile while the other one still multiplies these.
  weights_ = b_.alloc(plan_.tile.held, 2 * weights_of_tile(), kernel::Space::shared, "weights");
  handed_ = b_.alloc(f32, std::int64_t{tile_.blocks.consumers()} * tile_.ordered_lanes, kernel::Space::shared,
                     "handed_sums");
}

void OrderedSums::declare() { sums_ = zero_vectors(b_, {f32, tile_.ordered_lanes}, 1)[0]; }

/// A tile of weights has 64 columns as rows of 64 elements. It is the left operand with columns summed over.
void OrderedSums::keep(kernel::Buffer weights, Value thread, Value number, int first) {
  using Positions = WgmmaPositions;
  const Value warpgroup = thread / kernel::warpgroup_threads, own = thread % kernel::warpgroup_threads;
  const std::int64_t row_tile =
      std::int64_t{first / kernel::swizzle_side} * tile_.blocks.warpgroups * kernel::swizzled_elements;
  const Value tile = number % 2 * weights_of_tile() + warpgroup * kernel::swizzled_elements + row_tile;
  const Value column = Positions::first_row(own), in_chunk = Positions::first_column(own);
  const auto pair = [&](Value i) {
    const Value element = (i + first % kernel::swizzle_side / Positions::row_step) * Positions::row_step;
    const Value to = tile + kernel::swizzled_offset(b_, column, element) + in_chunk;
    for (std::size_t c = 0; c < Positions::rows_of_thread; ++c)
      b_.store(weights_, to + static_cast<int>(c) * Positions::row_step * kernel::swizzle_side,
               b_.load(weights, Positions::element(i, c), Positions::pair));
  };
  b_.for_loop(0, tile_.at_once / Positions::row_step, 1, pair, kernel::LoopKind::unroll);
}

void OrderedSums::multiply(Value thread, Value number) {
  b_.barrier();
  const Value warpgroup = thread / kernel::warpgroup_threads;
  const int column_tiles = tile_.blocks.warpgroups;
  const Value all = number % 2 * weights_of_tile();
  const Value own = by_rows(tile_) ? all + warpgroup * (column_tiles * kernel::swizzled_elements) : all;
  const Value depth = by_rows(tile_) ? b_.index(0) : warpgroup;
  for (int i = 0; i < column_tiles; ++i)
    kernel::wgmma(b_, sums_, {weights_, own + i * kernel::swizzled_elements, true},
                  columns_.summed_positions(depth, i * kernel::swizzle_side), kernel::wgmma_depth, i == 0);
}

void OrderedSums::add(Value outer, Value position, Value rank, Value thread) {
  const int vectors = tile_.ordered_lanes / vector;
  const auto give = [&] {
    const Value first = thread / kernel::warpgroup_threads * vectors, own = thread % kernel::warpgroup_threads;
    for (int i = 0; i < vectors; ++i)
      b_.store(handed_, vector_at(first + i, own), b_.slice(b_.get(sums_), i * vector, vector));
  };
  kernel::hand_over_together(b_, tile_.blocks.finishing, give, [&] {
    const Value own = thread - (tile_.blocks.threads() - kernel::warpgroup_threads);
    const Value tile = outer * b_.ceil_div(context_.dim(plan_.attention.rows), tile_.rows) + position / tile_.rows;
    kernel::in_block_turn(b_, context_.buffer(memory_.turns), tile + 1, rank,
                          [&] { add_to_memory(tile, equal(rank, 0), own); });
  });
}

/// A loop that needs few registers: the other threads have nearly all.
void OrderedSums::add_to_memory(Value tile, Value is_first, Value own) {
  const kernel::Buffer sums = context_.buffer(memory_.sums);
  const Value first = tile * (tile_.blocks.consumers() * tile_.ordered_lanes);
  b_.for_loop(0, tile_.blocks.warpgroups * tile_.ordered_lanes / vector, 1, [&](Value i) {
    const Value at = vector_at(i, own), to = first + at, terms = b_.load(handed_, at, vector);
    b_.if_(is_first, [&] { b_.store(sums, to, terms); }, [&] { kernel::add_in_turn(b_, sums, to, terms); });
  });
}

KernelContext::Built lower_clear_turns(const AttentionPlan& plan, const OrderedSums::Memory& memory,
                                       const WgmmaOutputTile& tile) {
  KernelContext context("clear_turns", KernelRole::clear);
  kernel::Builder& b = context.builder;
  context.declare(memory.turns, DType::i32, false, true);
  const Dim turns = turns_of(plan, tile);
  constexpr int lanes = 4;
  const Value n = context.dim(turns);
  for_threads(b, n, lanes, [&](Value at) {
    unmasked_or_masked(b, at, n, lanes, turns, [&](Value mask) {
      b.store(context.buffer(memory.turns), at, b.constant(DType::i32, 0, lanes), mask);
    });
  });
  return context.finish();
}

KernelContext::Built lower_ordered_totals(const AttentionPlan& plan, const OrderedSums::Memory& memory,
                                          const WgmmaOutputTile& tile, const AttentionParts::OutputProduct& part) {
  KernelContext context("attention_totals", KernelRole::attention_totals);
  kernel::Builder& b = context.builder;
  AttentionOutput output(context, plan.lowering, part);
  declare_buffers(context, {&part.epilogue}, plan.lowering);
  context.declare(memory.sums, f32, true, false);
  output.hoist();
  const Value tiles = b.ceil_div(context.dim(plan.attention.rows), tile.rows);
  const int lanes = tile.ordered_lanes, threads = tile.blocks.consumers(), vectors = lanes / vector;
  const auto block = [&](Value i) {
    const auto thread = [&](Value t) {
      const Value warpgroup = t / kernel::warpgroup_threads, own = t % kernel::warpgroup_threads;
      const kernel::Buffer total = b.alloc(f32, lanes, kernel::Space::register_, "total");
      const auto load = [&](Value v) {
        const Value from = i * (threads * lanes) + vector_at(warpgroup * vectors + v, own);
        b.store(total, v * vector, b.load(context.buffer(memory.sums), from, vector));
      };
      b.for_loop(0, vectors, 1, load, kernel::LoopKind::unroll);
      const Value position = i % tiles * tile.rows, zero = b.index(0);
      finish_sums(b, output, total, lanes, i / tiles,
                  by_rows(tile) ? position + warpgroup * kernel::wgmma_rows : position,
                  by_rows(tile) ? zero : warpgroup * kernel::swizzle_side, own);
    };
    b.for_loop(0, threads, 1, thread, kernel::LoopKind::thread_x);
  };
  b.for_loop(0, context.dim(plan.outer()) * tiles, 1, block, kernel::LoopKind::block_x);
  return context.finish();
}

}  // namespace lathe::gpu
