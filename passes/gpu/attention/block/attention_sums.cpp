#include "passes/gpu/attention/block/attention_sums.h"

#include <algorithm>
#include <bit>

#include "ir/kernel/intrinsics/gpu/mma.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

namespace {

/// Returns the number of adjacent elements of the depth per thread; fewer if other threads would have none.
int lanes_of(const Dim& depth, const AttentionTile& tile) {
  const auto side = std::int64_t{AttentionTile::side};
  const std::int64_t each = (depth.value().value_or(tile.span()) + side - 1) / side;
  const std::int64_t least = tile.tensor_cores() ? 2 : 1;  // tensor cores compute 16 columns at a time, for two warps
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(each, least, tile.own()))));
}

int vectors_of(const Dim& depth, const AttentionTile& tile, int lanes, int most) {
  const std::int64_t width = std::int64_t{AttentionTile::side} * lanes;
  const auto vectors = static_cast<int>(
      std::clamp<std::int64_t>((depth.value().value_or(width) + width - 1) / width, 1, std::int64_t{most}));
  return tile.tensor_cores() ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(vectors))) : vectors;
}

}  // namespace

AttentionSums::AttentionSums(KernelContext& context, const GpuContext& lowering,
                             const AttentionParts::OutputProduct& part, const AttentionTile& tile, int most_vectors,
                             AttentionSteps& steps)
    : b_(context.builder),
      part_(part),
      tile_(tile),
      lanes_(lanes_of(part.depth, tile)),
      vectors_(vectors_of(part.depth, tile, lanes_, most_vectors)),
      loader_(context, lowering, part.other, tile.compute),
      other_(loader_, tile, false, width()),
      steps_(steps),
      product_{{&other_}, Dim(tile.span())},
      output_(context, lowering, part) {
  if (other_.can_be_copied())
    other_.pass(
        copied_steps(lowering.tuned.attention, tile, width(), loader_.axis() == LaneAxis::row, product_.count), true);
}

void AttentionSums::add_programs(std::vector<const ElementwiseProgram*>& programs) const {
  programs.insert(programs.end(), {&part_.epilogue, &part_.other.code.program});
}

void AttentionSums::hoist() {
  loader_.hoist();
  output_.hoist();
}

void AttentionSums::pass_through(kernel::Buffer staged, std::int64_t slot, kernel::Buffer weights) {
  other_.pass_through(staged, slot);
  weights_ = weights;
}

void AttentionSums::begin(Value first_depth) {
  first_depth_ = first_depth;
  other_.begin(first_depth);
  sums_ = tile_.tensor_cores() ? zero_vectors(b_, {f32, width() / 4}, 1)
                               : zero_vectors(b_, {tile_.compute, lanes_}, tile_.own() * vectors_);
}

void AttentionSums::put_weights(int r, Value weights, const AttentionThread& thread) {
  const int own = tile_.own(), stride = tile_.stride(tile_.span());
  const Value row = thread.y * own + r, column = thread.x * own;
  weights = b_.cast(weights, tile_.held);
  if (part_.over_rows)
    b_.store(weights_, row * stride + column, weights);
  else
    b_.store_strided(weights_, column * stride + row, stride, weights);
}

void AttentionSums::add(const AttentionThread& thread) {
  const int own = tile_.own(), stride = tile_.stride(tile_.span()), steps = product_.steps();
  steps_.run(product_, thread.slot, [&](Value slot, Value first) {
    if (tile_.tensor_cores()) {
      const WarpPart warp(thread.slot, width());
      for (int k = 0; k < steps; k += kernel::mma_depth) {
        const kernel::MmaOperand left{weights_, (first + k) * stride + warp.row, stride, WarpPart::rows, true};
        b_.set(sums_[0], mma(b_, left, other_.matrix(slot, k, warp.column, warp.columns), b_.get(sums_[0])));
      }
      return;
    }
    const auto step = [&](Value k) {
      std::vector<Value> others;
      for (int g = 0; g < vectors_; ++g)
        others.push_back(other_.load(k, g * AttentionTile::side * lanes_ + thread.x * lanes_, lanes_));
      multiply_add(b_, sums_, b_.load(weights_, (first + k) * stride + thread.y * own, own), others);
    };
    b_.for_loop(0, steps, 1, step, LoopKind::unroll);
  });
}

void AttentionSums::scale(ScalarOp op, const std::vector<Value>& factors) {
  if (!tile_.tensor_cores()) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const Value factor = factors[i / static_cast<std::size_t>(vectors_)];
      b_.set(sums_[i], b_.apply(op, {b_.get(sums_[i]), b_.broadcast(factor, lanes_)}));
    }
    return;
  }
  const Value first = b_.broadcast(factors[0], 2), second = b_.broadcast(factors[1], 2);
  std::vector<int> lanes;
  for (int i = 0; i < sums_[0].type.lanes; ++i) lanes.push_back(i % 4);
  b_.set(sums_[0], b_.apply(op, {b_.get(sums_[0]), b_.shuffle(first, second, std::move(lanes))}));
}

/// The sums go through memory of the thread, so that the epilogue's code is emitted once.
void AttentionSums::finish(Value outer, Value first, const AttentionThread& thread) {
  if (tile_.tensor_cores()) return finish_pairs(outer, first, thread);
  const auto count = static_cast<std::int64_t>(sums_.size());
  const kernel::Buffer kept = b_.alloc(tile_.compute, count * lanes_, kernel::Space::stack, "sums");
  for (std::int64_t i = 0; i < count; ++i) {
    b_.store(kept, b_.index(i * lanes_), b_.get(sums_[i]));
  }
  b_.for_loop(0, count, 1, [&](Value i) {
    const Value position = first + thread.y * tile_.own() + i / vectors_;
    const Value depth = first_depth_ + i % vectors_ * (AttentionTile::side * lanes_) + thread.x * lanes_;
    output_.finish(outer, position, depth, b_.load(kept, i * lanes_, lanes_));
  });
}

void AttentionSums::finish_pairs(Value outer, Value first, const AttentionThread& thread) {
  const WarpPart warp(thread.slot, width());
  const kernel::Buffer kept = b_.alloc(f32, 2 * warp.pairs(), kernel::Space::stack, "sums");
  b_.store(kept, b_.index(0), b_.get(sums_[0]));
  b_.for_loop(0, warp.pairs(), 1, [&](Value pair) {
    const Value position = first + warp.pair_row(pair), depth = first_depth_ + warp.pair_column(pair);
    output_.finish(outer, position, depth, b_.load(kept, pair * 2, 2));
  });
}

}  // namespace lathe::gpu
