#pragma once

#include "ir/kernel/panels.h"

/// A product by a warp group's operations alone: sums[64 * tiles, 128] = left * right^T, filled by 128 threads and
/// used by 128.
namespace lathe::test {

struct GroupProduct {
  DType dtype = bf16;
  bool left_transposed = false, right_transposed = false;  ///< [k, rows] instead of [rows, k] in memory
  enum class Mistake {
    none,
    straight_lines,    ///< pieces of lines are not swapped
    panels_exchanged,  ///< of the right operand
    next_slot,         ///< the use reads the slot after its own
    one_slot,          ///< all turns fill the same memory
    half_filled,       ///< the right operand's second panel is forgotten
    read_outside,      ///< a user reads a stage after it
    not_waited,        ///< the sums are read while products may be under way
  };
  Mistake mistake = Mistake::none;
  int tiles = 1;                                 ///< below each other, one after the other in one ring
  bool left_boxes = false, right_boxes = false;  ///< brought by TMA
};

/// Buffers left, right, sums; dim k, by 64, of which the last may be ragged, and the elements of a line of left and
/// of right in memory, multiples of 8. The ring has two stages.
inline kernel::Kernel group_product(const GroupProduct& p) {
  using namespace kernel;
  using Mistake = GroupProduct::Mistake;
  constexpr int users = group_threads, stages = 2, pieces = panel_elements / 8;
  Builder b("group_product");
  const Buffer memory[] = {b.buffer("left", p.dtype, Access::read), b.buffer("right", p.dtype, Access::read)};
  const Buffer out = b.buffer("sums", f32, Access::write);
  const Value k = b.dim("k"), lines[] = {b.dim("left_line"), b.dim("right_line")};
  const bool transposed[] = {p.left_transposed, p.right_transposed};
  const int panels[] = {1, p.mistake == Mistake::half_filled ? 1 : 2}, stage[] = {panel_elements, 2 * panel_elements};
  const Buffer shared[] = {b.alloc(p.dtype, stages * stage[0], Space::shared, "a"),
                           b.alloc(p.dtype, stages * stage[1], Space::shared, "b")};
  // A tensor's rows beyond the 64 * tiles, or 128, that are multiplied do not matter.
  const auto map = [&](int s) {
    const Value rows = b.index(s == 0 ? p.tiles * group_rows : group_columns);
    const int box_lines = transposed[s] || s == 0 ? panel_side : group_columns;
    return b.tensor_map(memory[s], {.offset = 0,
                                    .dims = {{transposed[s] ? rows : k, 1, panel_side},
                                             {transposed[s] ? k : rows, lines[s], box_lines}}});
  };
  const bool boxes[] = {p.left_boxes, p.right_boxes};
  const int maps[] = {boxes[0] ? map(0) : none, boxes[1] ? map(1) : none};
  const auto copy_boxes = [&](int s, Value first_row, Value first_k, Value slot) {
    if (!transposed[s]) return b.copy_box(shared[s], slot * stage[s], maps[s], {first_k, first_row});
    for (int panel = 0; panel < panels[s]; ++panel)
      b.copy_box(shared[s], slot * stage[s] + panel * panel_elements, maps[s],
                 {first_row + panel * panel_side, first_k});
  };
  const auto copy = [&](int s, Value t, Value first_row, Value first_k, Value slot) {
    if (boxes[s]) return copy_boxes(s, first_row, first_k, slot);
    b.for_loop(t - users, panels[s] * pieces, group_threads, [&](Value number) {
      const Value panel = number / pieces, line = number / 8 % panel_side, element = number % 8 * 8;
      const Value inside =
          p.mistake == Mistake::straight_lines ? line * panel_side + element : panel_place(b, line, element);
      const Value at = p.mistake == Mistake::panels_exchanged ? (panels[s] - 1) - panel : panel;
      const Value to = slot * stage[s] + at * panel_elements + inside;
      const Value row = first_row + panel * panel_side + (transposed[s] ? element : line);
      const Value column = first_k + (transposed[s] ? line : element);
      if (transposed[s])
        b.async_copy(shared[s], to, memory[s], column * lines[s] + row, b.select(column < k, b.index(8), b.index(0)));
      else
        b.async_copy(shared[s], to, memory[s], row * lines[s] + column, k - column);
    });
  };
  const auto one_tile = [&](Value t, Value first_row) {
    const Var sums = b.var({f32, 64}, b.constant(f32, 0));
    b.for_loop(0, k, group_depth, [&](Value first) {
      const auto fill = [&](Value slot) {
        const Value to = p.mistake == Mistake::one_slot ? b.index(0) : slot;
        copy(0, t, first_row, first, to), copy(1, t, b.index(0), first, to);
      };
      const auto use = [&](Value slot) {
        if (p.mistake == Mistake::next_slot) slot = (slot + 1) % stages;
        if (p.mistake == Mistake::one_slot) slot = b.index(0);
        b.group_mma(sums, {shared[0], slot * stage[0], transposed[0]}, {shared[1], slot * stage[1], transposed[1]});
      };
      b.stage(fill, use);
    });
    if (p.mistake != Mistake::not_waited) b.wait_sums({&sums, 1});
    if (p.mistake == Mistake::read_outside) b.store(out, t, b.cast(b.load(shared[0], t), f32));
    for (int i = 0; i < 64; i += 2) {
      const SumPlace at = group_sum_place(0, i);
      const Value row = first_row + t / 32 * 16 + t % 32 / 4 + at.row, column = t % 4 * 2 + at.column;
      b.store(out, row * group_columns + column, b.slice(b.get(sums), i, 2));
    }
    b.barrier();
  };
  const auto thread = [&](Value t) {
    b.ring(stages, users, [&] {
      b.for_loop(0, p.tiles * group_rows, group_rows, [&](Value first_row) { one_tile(t, first_row); });
    });
  };
  b.for_loop(0, users + (p.left_boxes && p.right_boxes ? warp_threads : group_threads), 1, thread,
             LoopKind::thread_x);
  return b.finish();
}

}  // namespace lathe::test
