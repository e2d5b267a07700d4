#pragma once

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/gpu/copy_box.h"
#include "ir/kernel/intrinsics/gpu/pipeline/hand_over.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "tests/support/graphs/round_trip.h"

/// A kernel in which two warpgroups of consumers add elements of two stages and hand the sums to one or two others,
/// which double them.
namespace lathe::test {

struct HandedSums {
  enum class Mistake {
    none,
    other_warpgroup,  ///< finishers read what the other warpgroup gave
    same_element,     ///< consumers give the same elements
    first_turn_only,  ///< later turns give nothing
    read_back,        ///< consumers read what they gave
    written_outside,  ///< consumers write it outside of `give`
  };
  Mistake mistake = Mistake::none;
  int turns = 3, finishers = kernel::warpgroup_threads;
  bool together = false;  ///< one warpgroup finishes for both at once

  static constexpr int consumers = 2 * kernel::warpgroup_threads, steps = 2;
  static constexpr int first_finisher = consumers + kernel::warpgroup_threads;
  int threads() const { return first_finisher + finishers; }
  int rows() const { return turns * steps * kernel::swizzle_side; }

  /// y[turn, u] = 2 * sum over both steps of x at the position that the thread opposite to u in its warpgroup reads.
  static int position(int thread) { return thread * 16 % kernel::swizzled_elements; }
  kernel::Kernel build() const;
};

/// Buffers x: bf16[rows(), 64] and y: f32[turns, consumers].
inline kernel::Kernel HandedSums::build() const {
  using namespace kernel;
  Builder b("handed_sums");
  const Buffer x = b.buffer("x", bf16, Access::read), y = b.buffer("y", f32, Access::write);
  const Buffer tile = b.alloc(bf16, 2 * swizzled_elements, Space::shared, "tile"),
               sums = b.alloc(f32, consumers, Space::shared, "sums");
  const int map =
      b.tensor_map(x, {.offset = 0, .dims = {{swizzle_side, 1, swizzle_side}, {rows(), swizzle_side, swizzle_side}}});
  const auto one_turn = [&](Value turn, Value t) {
    const Var sum = b.var(b.constant(f32, 0));
    b.for_loop(0, steps, 1, [&](Value step) {
      pipeline_stage(
          b,
          [&](Value slot) {
            copy_box(b, tile, slot * swizzled_elements, map, {b.index(0), (turn * steps + step) * swizzle_side});
          },
          [&](Value slot) {
            const Value own = b.load(tile, slot * swizzled_elements + t * 16 % swizzled_elements);
            b.set(sum, b.get(sum) + b.cast(own, f32));
          });
    });
    if (mistake == Mistake::written_outside) b.if_(turn > 0, [&] { b.store(sums, t, b.get(sum)); });
    const auto give = [&](Value) {
      const Value to = mistake == Mistake::same_element ? t / 2 : t;
      const auto store = [&] { b.store(sums, to, b.get(sum)); };
      mistake == Mistake::first_turn_only ? b.if_(equal(turn, 0), store) : store();
    };
    const auto finish = [&](Value number) {
      const Value u = (t - first_finisher) % warpgroup_threads, first = number * warpgroup_threads;
      const Value from = first + (warpgroup_threads - 1) - u;
      const Value read = mistake == Mistake::other_warpgroup ? (from + warpgroup_threads) % consumers : from;
      b.store(y, turn * consumers + first + u, b.load(sums, read) * 2.0);
    };
    if (together)
      hand_over_together(b, 40, [&] { give({}); }, [&] { finish(b.index(0)), finish(b.index(1)); });
    else
      hand_over(b, finishers, give, finish);
    if (mistake == Mistake::read_back) b.store(y, turn * consumers + t, b.load(sums, t));
  };
  const auto thread = [&](Value t) {
    stage_pipeline(b, 2, consumers, [&] { b.for_loop(0, turns, 1, [&](Value turn) { one_turn(turn, t); }); });
  };
  b.for_loop(0, threads(), 1, thread, LoopKind::thread_x);
  return round_trip(b.finish());
}

/// Returns an operand and the result for it.
inline std::vector<std::uint16_t> handed_operand(const HandedSums& k) {
  std::vector<std::uint16_t> x;
  for (int i = 0; i < k.rows() * kernel::swizzle_side; ++i)
    x.push_back(kernel::bf16_bits(static_cast<float>(i * 7 % 61 - 30) / 4));
  return x;
}

inline std::vector<float> handed_result(const HandedSums& k) {
  const std::vector<std::uint16_t> x = handed_operand(k);
  std::vector<float> y;
  for (int turn = 0; turn < k.turns; ++turn)
    for (int u = 0; u < HandedSums::consumers; ++u) {
      const int group = kernel::warpgroup_threads,
                at = HandedSums::position(u / group * group + group - 1 - u % group), row = at / kernel::swizzle_side,
                chunk = (at % kernel::swizzle_side / 8) ^ (row % 8);
      float sum = 0;
      for (int step = 0; step < HandedSums::steps; ++step) {
        const int from = (turn * HandedSums::steps + step) * kernel::swizzled_elements;
        sum +=
            kernel::bf16_value(x[static_cast<std::size_t>(from + row * kernel::swizzle_side + chunk * 8 + at % 8)]);
      }
      y.push_back(2 * sum);
    }
  return y;
}

}  // namespace lathe::test
