#include "passes/gpu/attention/block/staged_operand.h"

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/mma.h"
#include "passes/gpu/chunks.h"

namespace lathe::gpu {

using kernel::Value;

StagedOperand::StagedOperand(OperandLoader& loader, const AttentionTile& tile, bool depth_is_step, int width)
    : loader_(loader),
      b_(loader.context().builder),
      tile_(tile),
      depth_is_step_(depth_is_step),
      along_steps_(depth_is_step == (loader.axis() == LaneAxis::k)),
      width_(width) {}

bool StagedOperand::can_be_copied() const {
  const AttentionOperand& operand = loader_.operand();
  const std::vector<int>& along = loader_.axis() == LaneAxis::k ? operand.depth : operand.position;
  return tile_.tensor_cores() && lies_in_chunks(operand.code.program, along, tile_.held);
}

void StagedOperand::pass(int steps, bool copied) {
  steps_ = steps;
  copied_ = copied;
}

void StagedOperand::pass_through(kernel::Buffer memory, std::int64_t slot_elements) {
  memory_ = memory;
  slot_elements_ = slot_elements;
}

void StagedOperand::begin(Value first_depth) {
  first_depth_ = first_depth;
  registers_ = zero_vectors(b_, {tile_.compute, tile_.own()}, copied_ ? 0 : rounds());
}

int StagedOperand::chunk_length() const { return copied_ ? copied_chunk : tile_.own(); }

/// A chunk consists of elements, or steps, that are adjacent in memory.
void StagedOperand::each(Value thread, const std::function<void(const Chunk&, int)>& body) {
  const int length = chunk_length(), along = (along_steps_ ? steps_ : width_) / length;
  for (int round = 0; round < rounds(); ++round) {
    const Value number = thread + round * AttentionTile::threads;
    const Value first = number % along * length, other = number / along;
    const Chunk chunk = along_steps_ ? Chunk{number, first, other} : Chunk{number, other, first};
    if (chunks() % AttentionTile::threads == 0)
      body(chunk, round);
    else
      b_.if_(number < chunks(), [&] { body(chunk, round); });
  }
}

StagedOperand::Point StagedOperand::point(const ScorePosition& tile, Value step, const Chunk& chunk) const {
  const Value first = loader_.operand().by_column ? tile.column : tile.row;
  if (depth_is_step_) return {first + chunk.element, step + chunk.step};
  return {first + step + chunk.step, first_depth_ + chunk.element};
}

void StagedOperand::copy(const ScorePosition& tile, Value step, Value thread, Value slot) {
  const Value depth_end = loader_.context().dim(loader_.operand().size),
              position_end = loader_.context().dim(positions());
  each(thread, [&](const Chunk& chunk, int) {
    const auto [position, depth] = point(tile, step, chunk);
    const Value inside = position < position_end && depth < depth_end;  // a whole chunk is inside or outside
    const OperandLoader::Element from = loader_.element(tile.outer, position, depth);
    const Value offset = along_steps_ ? chunk.element * stride() + chunk.step : chunk.step * stride() + chunk.element;
    async_copy(b_, memory_, slot * slot_elements_ + offset, from.buffer, from.index,
               b_.select(inside, b_.index(copied_chunk), b_.index(0)));
  });
}

void StagedOperand::bring(const ScorePosition& tile, Value step, Value thread) {
  KernelContext& context = loader_.context();
  const LaneAxis axis = along_steps_ == depth_is_step_ ? LaneAxis::k : LaneAxis::row;
  const bool along_depth = axis == LaneAxis::k;
  const Value depth_end = context.dim(loader_.operand().size), position_end = context.dim(positions());
  clear(b_, registers_);
  each(thread, [&](const Chunk& chunk, int round) {
    const auto [position, depth] = point(tile, step, chunk);
    b_.if_(position < position_end && depth < depth_end, [&, position = position, depth = depth] {
      set_inside(b_, registers_[round], along_depth ? depth : position, along_depth ? depth_end : position_end,
                 along_depth ? loader_.operand().size : positions(),
                 [&](Value mask) { return loader_.load(tile.outer, position, depth, axis, tile_.own(), mask); });
    });
  });
}

void StagedOperand::put(Value thread, Value slot) {
  each(thread, [&](const Chunk& chunk, int round) {
    const Value at = slot * slot_elements_ + (chunk.step * stride() + chunk.element);
    const Value held = b_.cast(b_.get(registers_[round]), tile_.held);
    if (along_steps_)
      b_.store_strided(memory_, at, stride(), held);
    else
      b_.store(memory_, at, held);
  });
}

Value StagedOperand::load(Value step, Value element, int lanes) const {
  return b_.load(memory_, step * stride() + element, lanes);
}

kernel::MmaOperand StagedOperand::matrix(Value slot, int step, Value first, int rows) const {
  const bool of_steps = in_rows_of_steps();
  const Value inside = of_steps ? first * stride() + step : first + step * stride();
  return {memory_, slot * slot_elements_ + inside, stride(), rows, !of_steps};
}

}  // namespace lathe::gpu
