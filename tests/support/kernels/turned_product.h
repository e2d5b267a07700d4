#pragma once

#include "ir/kernel/intrinsics/gpu/copy_box.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/pipeline/turn.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "tests/support/graphs/round_trip.h"

namespace lathe::test {

/// Two chained matmuls by warpgroups that take turns, as in attention: sums[64 * warpgroups, 64] =
/// narrow(left * keys^T / 8) * values. Weights are multiplied one stage after their scores, so a stage has the keys
/// of a tile and the values of the tile before.
struct TurnedProduct {
  DType dtype = bf16;
  int warpgroups = 2;
  enum class Mistake {
    none,
    one_group,       ///< both matmuls are one group
    sums_first,      ///< the matmul with the weights is started first
    left_running,    ///< nothing waits for the last matmul
    never_ended,     ///< a wait for ended groups, of matmuls that are in no group
    waits_in_turn,   ///< a turn waits
    turn_in_branch,  ///< only some threads take a turn
    turn_outside,    ///< a turn outside a stage
    commits_outside  ///< a group ends outside a stage
  };
  Mistake mistake = Mistake::none;

  static constexpr int width = kernel::swizzle_side;  ///< of all tiles
  int rows() const { return warpgroups * kernel::wgmma_rows; }
  int consumers() const { return warpgroups * kernel::warpgroup_threads; }
};

/// The code of its threads.
struct TurnedParts {
  using Mistake = TurnedProduct::Mistake;

  kernel::Builder& b;
  TurnedProduct p;
  kernel::Buffer out, left, keys, values;  ///< in global memory: out; in shared memory: the others
  kernel::Value columns;
  int key_map, value_map;

  struct Registers {
    kernel::Var scores, sums;
    kernel::Buffer weights;
  };

  void produce(kernel::Value slot, bool with_keys, bool with_values, kernel::Value column) const {
    const kernel::Value at = slot * kernel::swizzled_elements;
    const auto copy = [&](kernel::Buffer to, int map, kernel::Value from) {
      kernel::copy_box(b, to, at, map, {b.index(0), from});
    };
    if (with_keys) copy(keys, key_map, column);
    if (with_values) copy(values, value_map, column - TurnedProduct::width);
  }

  void start_scores(kernel::Value t, kernel::Value slot, const Registers& r) const {
    using namespace kernel;
    wgmma(b, r.scores, {left, t / warpgroup_threads * swizzled_elements}, {keys, slot * swizzled_elements},
          wgmma_depth, true);
  }
  void start_sums(kernel::Value slot, const Registers& r) const {
    using namespace kernel;
    wgmma(b, r.sums, b.load(r.weights, 0, 32), {values, slot * swizzled_elements, true});
  }
  void weigh(const Registers& r) const { b.store(r.weights, 0, b.cast(b.get(r.scores) * 0.125, p.dtype)); }

  void take_turn(kernel::Value t, kernel::Value slot, const Registers& r) const {
    if (p.mistake == Mistake::sums_first) start_sums(slot, r);
    if (p.mistake != Mistake::sums_first) start_scores(t, slot, r);
    if (p.mistake != Mistake::one_group) commit_sums(b);
    if (p.mistake == Mistake::sums_first) start_scores(t, slot, r);
    if (p.mistake == Mistake::waits_in_turn) wait_sums(b, {&r.scores, 1});
    if (p.mistake != Mistake::sums_first) start_sums(slot, r);
  }

  void consume(kernel::Value t, kernel::Value slot, const Registers& r) const {
    if (p.mistake == Mistake::turn_in_branch) b.if_(t < 128, [&] { turn(b, [] {}); });
    turn(b, [&] { take_turn(t, slot, r); });
    wait_sums(b, {&r.scores, 1}, 1);
    weigh(r);
    wait_ended_sums(b, {&r.sums, 1});
  }

  void stages_of(kernel::Value t, const Registers& r) const {
    using namespace kernel;
    constexpr int width = TurnedProduct::width;
    const Value once = min(columns, 1), end = b.ceil_div(columns, width) * width;
    const auto first = [&](Value slot) {
      start_scores(t, slot, r);
      if (p.mistake == Mistake::never_ended) wait_ended_sums(b, {&r.scores, 1});
      wait_sums(b, {&r.scores, 1});
      weigh(r);
    };
    const auto last = [&](Value slot) {
      start_sums(slot, r);
      if (p.mistake != Mistake::left_running) wait_sums(b, {&r.sums, 1});
    };
    b.for_loop(0, once, 1,
               [&](Value) { pipeline_stage(b, [&](Value slot) { produce(slot, true, false, b.index(0)); }, first); });
    if (p.mistake == Mistake::turn_outside) turn(b, [] {});
    if (p.mistake == Mistake::commits_outside) commit_sums(b);
    b.for_loop(width, columns, width, [&](Value column) {
      pipeline_stage(
          b, [&](Value slot) { produce(slot, true, true, column); }, [&](Value slot) { consume(t, slot, r); });
    });
    b.for_loop(0, once, 1,
               [&](Value) { pipeline_stage(b, [&](Value slot) { produce(slot, false, true, end); }, last); });
  }

  void pipeline(kernel::Value t, int stages) const {
    using namespace kernel;
    kernel::stage_pipeline(b, stages, p.consumers(), [&] {
      const Registers r{b.var({f32, 32}, b.constant(f32, 0)), b.var({f32, 32}, b.constant(f32, 0)),
                        b.alloc(p.dtype, 32, Space::register_, "weights")};
      stages_of(t, r);
      if (p.mistake != Mistake::left_running) store(t, r.sums);
    });
  }

  void store(kernel::Value t, kernel::Var sums) const {
    using namespace kernel;
    for (int i = 0; i < sums.type.lanes; i += 2) {
      const AccumulatorPosition at = wgmma_sum_position(0, i);
      const Value row = t / 32 * 16 + t % 32 / 4 + at.row, column = t % 4 * 2 + at.column;
      b.store(out, row * TurnedProduct::width + column, b.slice(b.get(sums), i, 2));
    }
  }
};

/// Buffers: left [64 * warpgroups, 64]; right [columns, 128], whose rows are 64 keys, then 64 values; sums
/// [64 * warpgroups, 64]. Dim: columns, in tiles of 64 of which the last may be ragged.
inline kernel::Kernel turned_product(const TurnedProduct& p) {
  using namespace kernel;
  // With one warpgroup, enough for dynamic shared memory: on the host, descriptors do not reach other variables.
  const int stages = p.warpgroups == 1 ? 4 : 2, width = TurnedProduct::width;
  Builder b("turned_product");
  const Buffer left_memory = b.buffer("left", p.dtype, Access::read),
               right = b.buffer("right", p.dtype, Access::read), out = b.buffer("sums", f32, Access::write);
  const Value columns = b.dim("columns");
  const auto shared = [&](int tiles, const char* name) {
    return b.alloc(p.dtype, tiles * swizzled_elements, Space::shared, name);
  };
  const Buffer left = shared(p.warpgroups, "left"), keys = shared(stages, "keys"), values = shared(stages, "values");
  const auto map = [&](int offset) {
    return b.tensor_map(right, {.offset = offset, .dims = {{width, 1, width}, {columns, 2 * width, width}}});
  };
  const int key_map = map(0), value_map = map(width);
  const TurnedParts parts{b, p, out, left, keys, values, columns, key_map, value_map};
  const auto thread = [&](Value t) {
    b.if_(t < p.consumers(), [&] {
      b.for_loop(t, p.rows() * width / 8, p.consumers(), [&](Value n) {
        const Value row = n / 8, element = n % 8 * 8;
        b.store(left, swizzled_offset(b, row, element), b.load(left_memory, row * width + element, 8));
      });
    });
    parts.pipeline(t, stages);
  };
  b.for_loop(0, p.consumers() + warpgroup_threads, 1, thread, LoopKind::thread_x);
  return test::round_trip(b.finish());
}

}  // namespace lathe::test
