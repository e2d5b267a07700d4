#pragma once

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/copy_box.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "tests/support/graphs/round_trip.h"

/// A matmul by warpgroup operations only: sums[64 * tiles, 128] = left * right^T, with 128 producer threads and 128
/// consumer threads.
namespace lathe::test {

struct WgmmaProduct {
  DType dtype = bf16;
  bool left_transposed = false, right_transposed = false;  ///< [k, rows] instead of [rows, k] in memory
  enum class Mistake {
    none,
    unswizzled,       ///< chunks of rows are not swizzled
    tiles_exchanged,  ///< the tiles of the right operand are swapped
    next_slot,        ///< the consumer reads the slot after its own
    one_slot,         ///< all iterations use the same memory
    half_produced,    ///< the second tile of the right operand is not copied
    read_outside,     ///< a consumer reads a stage outside of its iteration
    not_waited,       ///< the sums are read while matmuls may be running
  };
  Mistake mistake = Mistake::none;
  int tiles = 1;                                 ///< stacked along rows, processed in sequence in one pipeline
  bool left_boxes = false, right_boxes = false;  ///< copied by TMA
};

/// An operand of the matmul, and how its stages are produced.
struct WgmmaOperand {
  kernel::Builder& b;
  WgmmaProduct::Mistake mistake;
  bool transposed;
  kernel::Buffer memory, shared;
  kernel::Value k, stride;  ///< dims; `stride`: between rows in memory
  int rows, swizzled;       ///< per stage; `swizzled`: number of whole swizzled tiles
  int map = kernel::none;   ///< for boxes

  int stage() const { return rows / kernel::swizzle_side * kernel::swizzled_elements; }

  /// `all_rows`: rows of the tensor that are used.
  void map_boxes(int all_rows) {
    const kernel::Value count = b.index(all_rows);
    map =
        b.tensor_map(memory, {.offset = 0,
                              .dims = {{transposed ? count : k, 1, kernel::swizzle_side},
                                       {transposed ? k : count, stride, transposed ? kernel::swizzle_side : rows}}});
  }

  void copy_boxes(kernel::Value first_row, kernel::Value first_k, kernel::Value slot) const {
    if (!transposed) return copy_box(b, shared, slot * stage(), map, {first_k, first_row});
    for (int tile = 0; tile < swizzled; ++tile)
      copy_box(b, shared, slot * stage() + tile * kernel::swizzled_elements, map,
               {first_row + tile * kernel::swizzle_side, first_k});
  }

  /// The part of the copy that one thread performs.
  void copy(kernel::Value thread, kernel::Value first_row, kernel::Value first_k, kernel::Value slot) const {
    using kernel::Value;
    using Mistake = WgmmaProduct::Mistake;
    constexpr int side = kernel::swizzle_side, chunks = kernel::swizzled_elements / 8;
    if (map != kernel::none) return copy_boxes(first_row, first_k, slot);
    b.for_loop(thread, swizzled * chunks, kernel::warpgroup_threads, [&](Value number) {
      const Value tile = number / chunks, tile_row = number / 8 % side, element = number % 8 * 8;
      const Value inside =
          mistake == Mistake::unswizzled ? tile_row * side + element : kernel::swizzled_offset(b, tile_row, element);
      const Value at = mistake == Mistake::tiles_exchanged ? (swizzled - 1) - tile : tile;
      const Value to = slot * stage() + at * kernel::swizzled_elements + inside;
      const Value row = first_row + tile * side + (transposed ? element : tile_row);
      const Value column = first_k + (transposed ? tile_row : element);
      if (transposed)
        async_copy(b, shared, to, memory, column * stride + row, b.select(column < k, b.index(8), b.index(0)));
      else
        async_copy(b, shared, to, memory, row * stride + column, k - column);
    });
  }
};

/// Buffers left, right, sums. Dims: k, summed in steps of 64 of which the last may be ragged, and the row strides of
/// left and right in memory, multiples of 8. The pipeline has two stages.
inline kernel::Kernel wgmma_product(const WgmmaProduct& p) {
  using namespace kernel;
  using Mistake = WgmmaProduct::Mistake;
  constexpr int consumers = warpgroup_threads, stages = 2;
  Builder b("wgmma_product");
  const Buffer left_memory = b.buffer("left", p.dtype, Access::read),
               right_memory = b.buffer("right", p.dtype, Access::read), out = b.buffer("sums", f32, Access::write);
  const Value k = b.dim("k"), left_stride = b.dim("left_stride"), right_stride = b.dim("right_stride");
  const auto shared = [&](int swizzled, const char* name) {
    return b.alloc(p.dtype, stages * swizzled * swizzled_elements, Space::shared, name);
  };
  WgmmaOperand left{b, p.mistake, p.left_transposed, left_memory, shared(1, "a"), k, left_stride, wgmma_rows, 1};
  WgmmaOperand right{b,
                     p.mistake,
                     p.right_transposed,
                     right_memory,
                     shared(2, "b"),
                     k,
                     right_stride,
                     wgmma_columns,
                     p.mistake == Mistake::half_produced ? 1 : 2};
  if (p.left_boxes) left.map_boxes(p.tiles * wgmma_rows);
  if (p.right_boxes) right.map_boxes(wgmma_columns);
  const auto one_tile = [&](Value t, Value first_row) {
    const Var sums = b.var({f32, 64}, b.constant(f32, 0));
    b.for_loop(0, k, wgmma_depth, [&](Value first) {
      const auto produce = [&](Value slot) {
        const Value to = p.mistake == Mistake::one_slot ? b.index(0) : slot;
        left.copy(t - consumers, first_row, first, to), right.copy(t - consumers, b.index(0), first, to);
      };
      const auto consume = [&](Value slot) {
        if (p.mistake == Mistake::next_slot) slot = (slot + 1) % stages;
        if (p.mistake == Mistake::one_slot) slot = b.index(0);
        wgmma(b, sums, {left.shared, slot * left.stage(), left.transposed},
              {right.shared, slot * right.stage(), right.transposed});
      };
      kernel::pipeline_stage(b, produce, consume);
    });
    if (p.mistake != Mistake::not_waited) wait_sums(b, {&sums, 1});
    if (p.mistake == Mistake::read_outside) b.store(out, t, b.cast(b.load(left.shared, t), f32));
    for (int i = 0; i < 64; i += 2) {
      const AccumulatorPosition at = wgmma_sum_position(0, i);
      const Value row = first_row + t / 32 * 16 + t % 32 / 4 + at.row, column = t % 4 * 2 + at.column;
      b.store(out, row * wgmma_columns + column, b.slice(b.get(sums), i, 2));
    }
    b.barrier();
  };
  const auto thread = [&](Value t) {
    kernel::stage_pipeline(b, stages, consumers, [&] {
      b.for_loop(0, p.tiles * wgmma_rows, wgmma_rows, [&](Value first_row) { one_tile(t, first_row); });
    });
  };
  b.for_loop(0, consumers + (p.left_boxes && p.right_boxes ? warp_threads : warpgroup_threads), 1, thread,
             LoopKind::thread_x);
  return test::round_trip(b.finish());
}

}  // namespace lathe::test
