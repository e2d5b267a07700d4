#include <algorithm>

#include "ir/kernel/intrinsics/gpu/pipeline/hand_over.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/gemm/mma/mma_parts.h"
#include "passes/gpu/gemm/wgmma/tensor_boxes.h"

namespace lathe::gpu {

using kernel::Builder;
using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Partial = ProductParts::Partial;
using Position = ProductParts::Position;
using Side = ProductParts::Side;
using ResultTiling = ProductParts::Tiling;

namespace {

constexpr int wgmma_k_step = kernel::wgmma_depth;
constexpr int wgmma_chunk = TensorParts::chunk;

/// One block per multiprocessor processes tile after tile. Two warpgroups multiply, 64 rows each; a pipeline of
/// stages brings the operands. One thread of a warp copies them as boxes, or a third warpgroup does if an operand is
/// not a tensor of boxes. The copies continue with the next tile while the warpgroups finish one. The sums go through
/// shared memory, so that the epilogue's accesses are long.
///
/// If a multiprocessor has several tiles, another warpgroup runs the epilogue of one while the first two multiply the
/// next: it takes the 64 rows of sums that each of the first two leaves in shared memory.
class WgmmaProduct {
 public:
  WgmmaProduct(const GpuContext& lowering, const Region& region, const TensorPlan& plan)
      : gpu_(lowering.gpu),
        most_stages_(lowering.tuned.products.wgmma_stages),
        tensor_(lowering, region),
        parts_(tensor_.product),
        b_(parts_.builder()),
        plan_(plan),
        tile_(plan.tile) {
    parts_.context().multiplies_by(Multiplier::wgmma);
  }

  std::vector<KernelContext::Built> run(const GpuContext& lowering, const Region& region) {
    std::vector<KernelContext::Built> built;
    if (plan_.splits == 1) {
      built.push_back(kernel(nullptr));
      return built;
    }
    const Partial partial = parts_.partial(tile_.rows, tile_.columns, plan_.splits);
    built.push_back(kernel(&partial));
    built.push_back(ProductParts(lowering, region).combine(partial));
    return built;
  }

 private:
  int consumers() const { return tile_.threads(); }
  bool all_boxes() const { return left_boxes_ && right_boxes_; }
  /// Whether other warpgroups run the epilogues. Threads that copy elements need registers that these would take.
  bool overlaps(const Partial* partial) const { return !partial && all_boxes() && has_next_tiles(); }
  bool has_next_tiles() const {
    const auto batch = parts_.operands.batch.value(), m = parts_.operands.m.value(), n = parts_.operands.n.value();
    const auto tiles = [](std::int64_t size, int of) { return (size + of - 1) / of; };
    return !batch || !m || !n ||
           *batch * tiles(*m, tile_.rows) * tiles(*n, tile_.columns) > estimated_multiprocessors;
  }
  int producers(const Partial* partial) const {
    return all_boxes() && !overlaps(partial) ? kernel::warp_threads : kernel::warpgroup_threads;
  }
  int finishers(const Partial* partial) const { return overlaps(partial) ? kernel::warpgroup_threads : 0; }
  /// Number of parts of a tile's columns; a warpgroup multiplies one part at a time.
  int parts_across() const { return tile_.columns / kernel::wgmma_columns; }
  int stage(int rows) const { return rows * wgmma_k_step; }
  int stages() const {
    const int sums = tile_.rows * TensorParts::stride(tile_), one = stage(tile_.rows) + stage(tile_.columns);
    constexpr int barrier_pair = 16, size = 2;  // bytes, the latter per element
    const int most = most_stages_, for_barriers = barrier_pair * (most + consumers() / kernel::warpgroup_threads);
    const int left = static_cast<int>(gpu_.most_shared_bytes) - for_barriers - size * sums;
    return std::min(most, left / (size * one));
  }

  KernelContext::Built kernel(const Partial* partial) {
    return parts_.tiles_in_turn(tile_.rows, tile_.columns, partial, [&](const ResultTiling& tiling) {
      const Value blocks = kernel::min(tiling.count, b_.index(gpu_.multiprocessors));
      b_.for_loop(0, blocks, 1, [&](Value first) { block(tiling, first, partial); }, LoopKind::block_x);
    });
  }

  void map_boxes(const Side& side, const std::optional<TensorBoxes>& boxes, int rows,
                 std::optional<BoxCopies>& copies) {
    if (!boxes) return;
    const kernel::Buffer from = parts_.context().buffer(parts_.buffer_of(side.operand.operand.program[0].buffer));
    copies.emplace(parts_.context(), from, *boxes, side.along_k(), rows, wgmma_k_step);
  }

  void block(const ResultTiling& tiling, Value first, const Partial* partial) {
    map_boxes(parts_.left, left_boxes_, tile_.rows, left_copies_);
    map_boxes(parts_.right, right_boxes_, tile_.columns, right_copies_);
    const DType dtype = parts_.operands.dtype;
    const auto shared = [&](int count, const char* name) {
      return b_.alloc(dtype, count, kernel::Space::shared, name);
    };
    parts_.left.shared = shared(stages() * stage(tile_.rows), "left");
    parts_.right.shared = shared(stages() * stage(tile_.columns), "right");
    if (!partial) sums_ = shared(tile_.rows * TensorParts::stride(tile_), "sums");
    const auto thread = [&](Value t) {
      kernel::stage_pipeline(b_, stages(), consumers(), [&] {
        b_.for_loop(first, tiling.count, gpu_.multiprocessors, [&](Value i) {
          const auto [at, number] = parts_.unit(tiling, i);
          one_tile(at, number, t, partial);
        });
      });
    };
    b_.for_loop(0, consumers() + producers(partial) + finishers(partial), 1, thread, LoopKind::thread_x);
  }

  void one_tile(const Position& at, Value number, Value t, const Partial* partial) {
    const Value length = b_.round_up(b_.ceil_div(parts_.k, plan_.splits), wgmma_k_step), lo = number * length;
    const std::vector<Var> sums = multiply(at, lo, kernel::min(lo + length, parts_.k), t);
    const auto store = [&](kernel::Buffer to, Value first, std::int64_t stride) {
      const Value lane = t % kernel::warp_threads,
                  own = first + t / kernel::warp_threads * (tile_.warp_rows() * stride);
      for (std::size_t j = 0; j < sums.size(); ++j)
        tensor_.store_sums(to, own + static_cast<std::int64_t>(j) * kernel::wgmma_columns, stride,
                           kernel::wgmma_columns, lane, b_.get(sums[j]));
    };
    if (partial)
      return store(parts_.context().buffer(partial->buffer), parts_.first_partial(*partial, at, number),
                   partial->columns);
    const auto store_shared = [&] { store(sums_, b_.index(0), TensorParts::stride(tile_)); };
    if (overlaps(partial))
      return hand_over(
          b_, finishers(partial), [&](Value) { store_shared(); },
          [&](Value warpgroup) { finish_rows(at, warpgroup, t - (consumers() + producers(partial))); });
    b_.barrier();  // the previous tile has been read
    store_shared();
    b_.barrier();
    tensor_.finish(at, sums_, tile_, t);
  }

  /// Runs the epilogue of the rows that a warpgroup multiplied, on thread `t` of another one.
  void finish_rows(const Position& at, Value warpgroup, Value t) {
    TensorTile rows = tile_;
    rows.rows = kernel::wgmma_rows, rows.warps_down = kernel::warpgroup_threads / kernel::warp_threads;
    const Value first = warpgroup * rows.rows;
    tensor_.finish({at.batch, at.m + first, at.n}, sums_, rows, t, first * TensorParts::stride(tile_));
  }

  /// Returns the thread's sums over [lo, hi); lo is a multiple of the step.
  std::vector<Var> multiply(const Position& at, Value lo, Value hi, Value t) {
    std::vector<Var> sums;
    const int lanes = kernel::wgmma_rows * kernel::wgmma_columns / kernel::warpgroup_threads;
    for (int j = 0; j < parts_across(); ++j) sums.push_back(b_.var({f32, lanes}, b_.constant(f32, 0)));
    b_.for_loop(lo, hi, wgmma_k_step, [&](Value first_k) {
      const auto produce = [&](Value slot) {
        copy(parts_.left, left_copies_, tile_.rows, at.batch, at.m, first_k, slot, t - consumers());
        copy(parts_.right, right_copies_, tile_.columns, at.batch, at.n, first_k, slot, t - consumers());
      };
      const auto consume = [&](Value slot) {
        const Value warpgroup = t / kernel::warpgroup_threads;
        const Value left = slot * stage(tile_.rows) + warpgroup * kernel::swizzled_elements;
        for (std::size_t j = 0; j < sums.size(); ++j) {
          const Value right = slot * stage(tile_.columns) + static_cast<std::int64_t>(j) *
                                                                (kernel::wgmma_columns / kernel::swizzle_side) *
                                                                kernel::swizzled_elements;
          wgmma(b_, sums[j], {parts_.left.shared, left, !parts_.left.along_k()},
                {parts_.right.shared, right, !parts_.right.along_k()});
        }
      };
      kernel::pipeline_stage(b_, produce, consume);
    });
    wait_sums(b_, sums);
    return sums;
  }

  /// Copies an operand's stage as boxes, or a thread's share of it: the same chunks of every 16 rows of its tiles.
  void copy(const Side& side, const std::optional<BoxCopies>& boxes, int rows, Value batch, Value first_row,
            Value first_k, Value slot, Value thread) {
    if (boxes) return boxes->copy(side.shared, batch, first_row, first_k, slot * stage(rows));
    constexpr int chunks_per_row = kernel::swizzle_side / wgmma_chunk,
                  rows_of_step = kernel::warpgroup_threads / chunks_per_row;
    const Value row_of_chunk = thread / chunks_per_row, element = thread % chunks_per_row * wgmma_chunk;
    const Value offset = slot * stage(rows) + kernel::swizzled_offset(b_, row_of_chunk, element);
    for (int first_row_of_step = 0; first_row_of_step < rows; first_row_of_step += rows_of_step) {
      const int tile_row = first_row_of_step / kernel::swizzle_side * kernel::swizzle_side;
      const Value row = first_row + (side.along_k() ? row_of_chunk + first_row_of_step : element + tile_row);
      const Value k = first_k + (side.along_k() ? element : row_of_chunk + first_row_of_step % kernel::swizzle_side);
      tensor_.copy(side, batch, row, k, offset + first_row_of_step * kernel::swizzle_side, rows, wgmma_k_step);
    }
  }

  const GpuInfo& gpu_;
  int most_stages_;
  TensorParts tensor_;
  ProductParts& parts_;
  Builder& b_;
  TensorPlan plan_;
  TensorTile tile_;
  std::optional<TensorBoxes> left_boxes_ = TensorBoxes::of(gpu_, WgmmaOperand::of(parts_.operands.left)),
                             right_boxes_ = TensorBoxes::of(gpu_, WgmmaOperand::of(parts_.operands.right));
  std::optional<BoxCopies> left_copies_, right_copies_;
  kernel::Buffer sums_;
};

}  // namespace

std::vector<KernelContext::Built> lower_wgmma_product(const GpuContext& context, const Region& region,
                                                      const TensorPlan& plan) {
  return WgmmaProduct(context, region, plan).run(context, region);
}

}  // namespace lathe::gpu
