#include "passes/gpu/attention_tile.h"

#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;
using schedule::LaneAxis;

StagedOperand::StagedOperand(OperandLoader& loader, const AttentionTile& tile, bool depth_is_step, int width)
    : loader_(loader),
      b_(loader.context().builder),
      tile_(tile),
      depth_is_step_(depth_is_step),
      along_steps_(depth_is_step == (loader.axis() == LaneAxis::k)),
      width_(width) {}

void StagedOperand::begin() {
  const int rounds = (pieces() + AttentionTile::threads - 1) / AttentionTile::threads;
  registers_ = zero_vectors(b_, {tile_.compute, tile_.own()}, rounds);
}

/// Where a piece stands: `own` elements, or steps, that are neighbours in memory.
StagedOperand::Piece StagedOperand::piece(Value slot, int round) const {
  const int own = tile_.own(), along = (along_steps_ ? AttentionTile::steps : width_) / own;
  const Value number = slot + round * AttentionTile::threads;
  const Value first = number % along * own, other = number / along;
  return along_steps_ ? Piece{number, first, other} : Piece{number, other, first};
}

void StagedOperand::each(Value slot, const std::function<void(const Piece&, kernel::Var)>& body) {
  for (std::size_t round = 0; round < registers_.size(); ++round) {
    const Piece here = piece(slot, static_cast<int>(round));
    if (pieces() % AttentionTile::threads == 0)
      body(here, registers_[round]);
    else
      b_.if_(here.number < pieces(), [&] { body(here, registers_[round]); });
  }
}

void StagedOperand::bring(Value outer, Value first_element, Value first_step, Value slot) {
  const AttentionOperand& operand = loader_.operand();
  const Dim positions = operand.code.program.points(operand.position);
  KernelContext& context = loader_.context();
  const LaneAxis axis = along_steps_ == depth_is_step_ ? LaneAxis::k : LaneAxis::row;
  const bool along_depth = axis == LaneAxis::k;
  clear(b_, registers_);
  each(slot, [&](const Piece& here, kernel::Var var) {
    const Value step = first_step + here.step, element = first_element + here.element;
    const Value depth = depth_is_step_ ? step : element, position = depth_is_step_ ? element : step;
    const Value depth_end = context.dim(operand.size), position_end = context.dim(positions);
    b_.if_(position < position_end && depth < depth_end, [&] {
      set_inside(b_, var, along_depth ? depth : position, along_depth ? depth_end : position_end,
                 along_depth ? operand.size : positions,
                 [&](Value mask) { return loader_.load(outer, position, depth, axis, tile_.own(), mask); });
    });
  });
}

void StagedOperand::put(Value slot) {
  const int line = tile_.line(width_);
  each(slot, [&](const Piece& here, kernel::Var var) {
    const Value at = here.step * line + here.element;
    const Value held = b_.cast(b_.get(var), tile_.held);
    if (along_steps_)
      b_.store_strided(memory_, at, line, held);
    else
      b_.store(memory_, at, held);
  });
}

Value StagedOperand::load(Value step, Value element, int lanes) const {
  return b_.load(memory_, step * tile_.line(width_) + element, lanes);
}

kernel::Builder::Matrix StagedOperand::matrix(Value first, int rows) const {
  return {memory_, first, tile_.line(width_), rows, true};
}

WarpPart::WarpPart(Value slot, int width)
    : columns(width / 2),
      row(slot / kernel::warp_threads / 2 * rows),
      column(slot / kernel::warp_threads % 2 * columns),
      lane(slot % kernel::warp_threads) {}

Value WarpPart::pair_row(Value pair) const { return row + lane / 4 + pair % 2 * 8; }
Value WarpPart::pair_column(Value pair) const { return column + lane % 4 * 2 + pair / 2 * 8; }

}  // namespace lathe::gpu
