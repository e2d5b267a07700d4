#pragma once

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/gpu/grid/block_order.h"
#include "tests/support/graphs/round_trip.h"

/// A kernel whose blocks add to the same rows in the order of their indices.
namespace lathe::test {

struct AddingBlocks {
  enum class Mistake {
    none,
    later_first,   ///< a block waits for the next one
    other_turn,    ///< blocks add to a row in turns of other rows
    not_passed,    ///< a turn does not end
    nested,        ///< a turn in another turn
    other_passed,  ///< another turn ends
    in_branch,
    read_outside,  ///< a sum is read outside the turns
    counted,       ///< a thread reads the counter
    first_turn,    ///< the turn of number 0
    many_threads,  ///< two warpgroups take a turn
    two_loops,     ///< blocks along x and y
    added_late,    ///< the memory adds outside the turns
  };
  Mistake mistake = Mistake::none;
  int blocks = 7, rows = 5;
  bool by_memory = false;  ///< the memory adds

  static constexpr int width = kernel::warpgroup_threads;
  std::size_t elements() const { return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(rows * width); }
  std::size_t turns() const { return static_cast<std::size_t>(rows) + 1; }
  kernel::Kernel build() const;
};

/// Buffers x: f32[blocks, rows, width], y: f32[rows, width], turns: i32[rows + 1]. y is the sum of x over the blocks.
inline kernel::Kernel AddingBlocks::build() const {
  using namespace kernel;
  Builder b("adding_blocks");
  const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::read_write),
               turns = b.buffer("turns", DType::i32, Access::read_write);
  const auto add = [&](Value block, Value at) {
    const Value own = b.load(x, block * (rows * width) + at);
    b.if_(equal(block, 0), [&] { b.store(y, at, own); }, [&] { b.store(y, at, b.load(y, at) + own); });
  };
  const auto add_by_memory = [&](Value block, Value t, Value row) {
    b.if_(t < width / AddInTurn::lanes, [&] {
      const Value at = row * width + t * AddInTurn::lanes;
      const Value own = b.load(x, block * (rows * width) + at, AddInTurn::lanes);
      b.if_(equal(block, 0), [&] { b.store(y, at, own); }, [&] { add_in_turn(b, y, at, own); });
    });
  };
  const auto pass = [&](Value turn) { b.machine(PassBlockTurn{turns.id, turn.id}.instruction()); };
  const auto row = [&](Value block, Value t, Value r) {
    const Value at = r * width + t % width, none_passed = b.index(0);
    const Value turn = mistake == Mistake::first_turn ? none_passed : r + 1;
    const Value rank = mistake == Mistake::later_first ? (blocks - 1) - block : block;
    const auto own_turn = [&] {
      b.machine(WaitBlockTurn{turns.id, turn.id, rank.id}.instruction());
      if (mistake == Mistake::nested) in_block_turn(b, turns, turn, rank, [] {});
      by_memory ? add_by_memory(block, t, r) : add(block, at);
      if (mistake != Mistake::not_passed) pass(mistake == Mistake::other_passed ? r + 2 : turn);
    };
    if (mistake == Mistake::other_turn) {
      in_block_turn(b, turns, turn, rank, [&] { add(block, (r + block) % rows * width + t % width); });
    } else if (mistake == Mistake::in_branch) {
      b.if_(r > 0, own_turn);
    } else {
      own_turn();
    }
    if (mistake == Mistake::added_late) add_by_memory(block, t, r);
    if (mistake == Mistake::read_outside) b.var(b.load(y, at));
    if (mistake == Mistake::counted) b.var(b.load(turns, r));
  };
  const auto block = [&](Value i) {
    b.for_loop(
        0, mistake == Mistake::many_threads ? 2 * width : width, 1,
        [&](Value t) { b.for_loop(0, rows, 1, [&](Value r) { row(i, t, r); }); }, LoopKind::thread_x);
  };
  const auto blocks_of = [&](Value) { b.for_loop(0, blocks, 1, block, LoopKind::block_x); };
  if (mistake == Mistake::two_loops)
    b.for_loop(0, 2, 1, blocks_of, LoopKind::block_y);
  else
    blocks_of({});
  return round_trip(b.finish());
}

/// Returns x: any other order of the additions gives other bits in some elements.
inline std::vector<float> ordered_terms(const AddingBlocks& k) {
  std::vector<float> x;
  for (std::size_t i = 0; i < k.elements(); ++i)
    x.push_back(static_cast<float>(i * 2654435761U % 1000003) * (i % 3 == 0 ? 1e-3F : 1e3F));
  return x;
}

inline std::vector<float> ordered_result(const AddingBlocks& k) {
  const std::vector<float> x = ordered_terms(k);
  const std::size_t row = x.size() / static_cast<std::size_t>(k.blocks);
  std::vector<float> y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(row));
  for (std::size_t i = row; i < x.size(); ++i) y[i % row] += x[i];
  return y;
}

/// Runs the kernel on these terms, with counters at 0; returns y.
template <class Run>
std::vector<float> run_ordered(const AddingBlocks& k, const Run& run) {
  std::vector<float> x = ordered_terms(k), y(x.size() / static_cast<std::size_t>(k.blocks), -1);
  std::vector<std::int32_t> turns(k.turns());
  const kernel::BoundBuffer buffers[] = {{x.data(), static_cast<std::int64_t>(x.size())},
                                         {y.data(), static_cast<std::int64_t>(y.size())},
                                         {turns.data(), static_cast<std::int64_t>(turns.size())}};
  run(buffers);
  return y;
}

}  // namespace lathe::test
