#pragma once

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/copy_box.h"
#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/kernels/wgmma_product.h"

/// Two matmuls by the operations of a warpgroup, as in attention: sums[64, 144] = n * narrow(left * right^T / 8) *
/// values. n is the number of passes over all columns, which only the consumers know: 2 if the first element of
/// `left` is positive, else 1.
namespace lathe::test {

struct ChainedProduct {
  DType dtype = bf16;
  bool boxes = false;
  bool starts = false;  ///< the matmul overwrites the scores, else it adds to zeros
  enum class Mistake {
    none,
    not_waited,     ///< the scores are read while the matmul may be running
    stored_late,    ///< the left operand is stored inside the pipeline, outside its stage
    of_a_variable,  ///< the weights are a variable
    starts_held,    ///< the matmul with the weights overwrites its sums
  };
  Mistake mistake = Mistake::none;

  static constexpr int depth = 48, values = 144, stride = 192;
};

/// The code of its threads.
struct ChainedParts {
  kernel::Builder& b;
  ChainedProduct p;
  kernel::Buffer right, out, rows, keys, values;  ///< in global memory: right, out; in shared memory: the others
  kernel::Value columns;
  int key_map, value_map;

  static constexpr int consumers = kernel::warpgroup_threads, stride = ChainedProduct::stride,
                       depth = ChainedProduct::depth;

  void produce(kernel::Value t, kernel::Value column, kernel::Value slot) const {
    using namespace kernel;
    for (int tile = 0; tile < 4; ++tile) {
      const Buffer to = tile == 0 ? keys : values;
      const Value first = tile == 0 ? slot * swizzled_elements : (slot * 3 + (tile - 1)) * swizzled_elements;
      const int from = tile == 0 ? 0 : depth + (tile - 1) * 64, end = tile == 0 ? depth : stride;
      if (p.boxes) {
        copy_box(b, to, first, tile == 0 ? key_map : value_map, {b.index(tile == 0 ? 0 : (tile - 1) * 64), column});
        continue;
      }
      b.for_loop(t - consumers, swizzled_elements / 8, warpgroup_threads, [&](Value n) {
        const Value at = n / 8, element = n % 8 * 8, inside = column + at < columns && element + from < end;
        async_copy(b, to, first + swizzled_offset(b, at, element), right, (column + at) * stride + element + from,
                   b.select(inside, b.index(8), b.index(0)));
      });
    }
  }

  void consume(kernel::Value slot, kernel::Var scores, kernel::Var sums, kernel::Var few) const {
    using namespace kernel;
    using Mistake = ChainedProduct::Mistake;
    if (!p.starts) b.set(scores, b.constant(f32, 0, 32));
    wgmma(b, scores, {rows, 0}, {keys, slot * swizzled_elements}, depth, p.starts);
    const Var all[] = {scores, sums, few};
    if (p.mistake != Mistake::not_waited) wait_sums(b, all);
    Value weights = b.cast(b.get(scores) * 0.125, p.dtype);
    if (p.mistake == Mistake::of_a_variable) weights = b.get(b.var(weights));
    const SwizzledTiles first{values, slot * 3 * swizzled_elements, true};
    if (p.mistake == Mistake::starts_held)
      b.machine(
          Wgmma{.sums = sums.id,
                .starts = true,
                .right = {.buffer = values.id, .first = b.bound(first.first).id, .rows = 128, .transposed = true},
                .left_value = weights.id}
              .instruction());
    wgmma(b, sums, weights, first);
    wgmma(b, few, weights, {values, (slot * 3 + 2) * swizzled_elements, true});
  }

  void store(kernel::Value t, kernel::Var sums, int first) const {
    using namespace kernel;
    for (int i = 0; i < sums.type.lanes; i += 2) {
      const AccumulatorPosition at = wgmma_sum_position(0, i);
      const Value row = t / 32 * 16 + t % 32 / 4 + at.row, column = t % 4 * 2 + at.column + first;
      b.store(out, row * ChainedProduct::values + column, b.slice(b.get(sums), i, 2));
    }
  }

  /// `left`: in global memory.
  void pipeline(kernel::Value t, kernel::Buffer left, int stages) const {
    using namespace kernel;
    kernel::stage_pipeline(b, stages, consumers, [&] {
      const Var end = b.var(columns);
      const Var scores = b.var({f32, 32}, b.constant(f32, 0)), sums = b.var({f32, 64}, b.constant(f32, 0)),
                few = b.var({f32, 8}, b.constant(f32, 0));
      b.for_loop(0, 2, 1, [&](Value) {
        b.for_loop(0, b.get(end), 64, [&](Value column) {
          if (p.mistake == ChainedProduct::Mistake::stored_late) b.store(rows, 0, b.constant(p.dtype, 0));
          kernel::pipeline_stage(
              b, [&](Value slot) { produce(t, column, slot); },
              [&](Value slot) { consume(slot, scores, sums, few); });
        });
        const Value again = from_consumers(b, b.cast(b.load(left, 0), f32) > 0.0);
        b.set(end, b.select(again, columns, b.index(0)));
      });
      const Var all[] = {scores, sums, few};
      wait_sums(b, all);
      store(t, sums, 0), store(t, few, 128);
    });
  }
};

/// Buffers: left [64, 48]; right [columns, 192], whose rows are 48 elements that are multiplied by left, then 144
/// values; sums [64, 144]. Dim: columns, whose last tile may be ragged.
inline kernel::Kernel chained_product(const ChainedProduct& p) {
  using namespace kernel;
  constexpr int consumers = ChainedParts::consumers, stages = 2, stride = ChainedProduct::stride,
                depth = ChainedProduct::depth;
  Builder b("chained_product");
  const Buffer left = b.buffer("left", p.dtype, Access::read), right = b.buffer("right", p.dtype, Access::read),
               out = b.buffer("sums", f32, Access::write);
  const Value columns = b.dim("columns");
  const auto shared = [&](int tiles, const char* name) {
    return b.alloc(p.dtype, tiles * swizzled_elements, Space::shared, name);
  };
  const Buffer rows = shared(1, "rows"), keys = shared(stages, "keys"), values = shared(stages * 3, "values");
  const int key_map = b.tensor_map(right, {.offset = 0, .dims = {{depth, 1, 64}, {columns, stride, 64}}});
  const int value_map = b.tensor_map(right, {.offset = depth, .dims = {{144, 1, 64}, {columns, stride, 64}}});
  const ChainedParts parts{b, p, right, out, rows, keys, values, columns, key_map, value_map};
  const auto thread = [&](Value t) {
    b.for_loop(t, swizzled_elements / 8, 2 * consumers, [&](Value n) {
      const Value at = n / 8, element = n % 8 * 8, inside = b.broadcast(element < depth, 8);
      b.store(rows, swizzled_offset(b, at, element), b.load(left, at * depth + element, 8, inside));
    });
    parts.pipeline(t, left, stages);
  };
  b.for_loop(0, 2 * consumers, 1, thread, LoopKind::thread_x);
  return test::round_trip(b.finish());
}

}  // namespace lathe::test
