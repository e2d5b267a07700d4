#include "passes/gpu/attention/wgmma/wgmma_operands.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/mma.h"
#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/chunks.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;

std::optional<LaneAxis> axis_of_chunks(const AttentionOperand& operand, DType held) {
  const ElementwiseProgram& program = operand.code.program;
  if (lies_in_chunks(program, operand.depth, held)) return LaneAxis::k;
  if (lies_in_chunks(program, operand.position, held)) return LaneAxis::row;
  return std::nullopt;
}

bool are_boxes(const GpuInfo& gpu, const AttentionOperand& operand, DType held, bool sums_positions) {
  const auto axis = axis_of_chunks(operand, held);
  return axis && TensorBoxes::of(gpu, WgmmaOperand::of(operand, *axis, sums_positions));
}

StationaryOperand::StationaryOperand(KernelContext& context, const GpuContext& lowering,
                                     const AttentionOperand& operand, const Dim& depth, const AttentionTile& tile,
                                     int positions)
    : b_(context.builder),
      loader_(context, lowering, operand, tile.compute),
      depth_(depth),
      tile_(tile),
      known_depth_(static_cast<int>(*depth.value())),
      positions_(positions) {}

void StationaryOperand::allocate(const char* name) {
  shared_ = b_.alloc(tile_.held, elements(positions_, known_depth_), kernel::Space::shared, name);
}

void StationaryOperand::bring(Value outer, Value first, Value count, Value thread, int threads) {
  constexpr int chunk = 8;
  const int chunks = whole_tiles(known_depth_) / chunk;
  const Value last = count - 1;
  const auto load = [&](Value position, Value depth) {
    const auto elements = [&](Value mask) {
      return loader_.load(outer, min(first + position, last), depth, LaneAxis::k, chunk, mask);
    };
    if (known_depth_ == whole_tiles(known_depth_)) return elements({});
    const kernel::Var some = zero_vectors(b_, {tile_.compute, chunk}, 1)[0];
    b_.if_(depth < known_depth_, [&] { set_inside(b_, some, depth, b_.index(known_depth_), depth_, elements); });
    return b_.get(some);
  };
  // Unrolled, so that all loads are in flight at the same time.
  const auto one = [&](Value i) {
    const Value number = thread + i * threads, position = number / chunks, depth = number % chunks * chunk;
    const Value tiles = depth / kernel::swizzle_side * (positions_ * kernel::swizzle_side);
    b_.store(shared_, tiles + kernel::swizzled_offset(b_, position, depth % kernel::swizzle_side),
             b_.cast(load(position, depth), tile_.held));
  };
  LATHE_ASSERT(positions_ * chunks % threads == 0);
  b_.for_loop(0, positions_ * chunks / threads, 1, one, kernel::LoopKind::unroll);
}

void StationaryOperand::clear(Value thread, int threads) {
  constexpr int chunk = 8;
  const Value zeros = b_.cast(b_.constant(tile_.compute, 0, chunk), tile_.held);
  const Value end = b_.index(elements(positions_, known_depth_));
  b_.for_loop(thread * chunk, end, threads * chunk, [&](Value at) { b_.store(shared_, at, zeros); });
}

kernel::SwizzledTiles StationaryOperand::rows_of_warpgroup(Value thread, int k) const {
  if (positions_ == kernel::wgmma_rows) return {shared_, k * positions_};
  return {shared_, thread / kernel::warpgroup_threads * kernel::swizzled_elements + k * positions_};
}

kernel::SwizzledTiles StationaryOperand::summed_positions(Value tile, int position) const {
  return {shared_, tile * (positions_ * kernel::swizzle_side) + position * kernel::swizzle_side, true};
}

void StreamedOperand::map(const AttentionPlan& plan) {
  const WgmmaOperand from = WgmmaOperand::of(operand_, *axis_of_chunks(operand_, plan.tile.held), sums_positions_);
  transposed_ = !from.along_k;
  boxes_.emplace(context_, context_.buffer(plan.lowering.buffer_of(from.program[0].buffer)),
                 *TensorBoxes::of(plan.lowering.gpu, from), from.along_k, rows_, depth_);
}

void StreamedOperand::allocate(DType held, int stages, const char* name) {
  shared_ = context_.builder.alloc(held, stages * elements(), kernel::Space::shared, name);
}

void StreamedOperand::copy(Value slot, Value outer, Value position) const {
  const Value zero = context_.builder.index(0), at = slot * elements();
  boxes_->copy(shared_, outer, sums_positions_ ? zero : position, sums_positions_ ? position : zero, at);
}

kernel::SwizzledTiles StreamedOperand::right(Value slot, int row, int k, bool transposed) const {
  return {shared_, slot * elements() + (k * rows_ + row * kernel::swizzle_side), transposed_ != transposed};
}

namespace {
/// Rounds the depth up to steps of k that tensor cores process at a time.
int whole_steps(int depth) {
  constexpr int step = kernel::mma_depth;
  return (depth + step - 1) / step * step;
}
}  // namespace

void multiply(kernel::Builder& b, kernel::Var sums, const StationaryOperand& left, Value thread,
              const StreamedOperand& right, Value slot, int row) {
  for (int k = 0; k < left.depth(); k += kernel::wgmma_depth) {
    const int deep = std::min(kernel::wgmma_depth, whole_steps(left.depth() - k));
    wgmma(b, sums, left.rows_of_warpgroup(thread, k), right.right(slot, row, k), deep, k == 0);
  }
}

}  // namespace lathe::gpu
