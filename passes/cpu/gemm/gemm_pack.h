#pragma once

#include <functional>
#include <vector>

#include "passes/cpu/gemm/gemm.h"
#include "passes/cpu/vector_transpose.h"

/// Parts of the matrix-product schedules that several files share.
namespace lathe::cpu {

/// Whether a value is a known multiple of `step`.
bool known_multiple(const kernel::Builder& b, kernel::Value value, std::int64_t step);

/// body(i) for i in lo .. hi, `factor` at a time as far as possible.
void for_unrolled(kernel::Builder& b, kernel::Value lo, kernel::Value hi, int factor,
                  const kernel::Builder::Body& body);

/// Lanes of two vectors in turn.
kernel::Value interleave(kernel::Builder& b, kernel::Value even, kernel::Value odd);

/// The sums of as many vectors as each has lanes (a power of two): lane j is the sum of the lanes of vectors[j].
/// Halves of two vectors are added at each level, so that n sums take 3 n operations.
kernel::Value sums_of_lanes(kernel::Builder& b, std::vector<kernel::Value> vectors);

/// Steps of k: k itself, or pairs.
kernel::Value steps_of_k(kernel::Builder& b, const GemmTile& tile, kernel::Value k);

/// One micro-panel of an operand: rows row .. row + width of a batch, steps k0 .. k0 + depth.
struct MicroPanelSource {
  kernel::Value batch, row, rows, k0, depth;  ///< rows: how many the operand has; row < rows
  kernel::Value k{};                          ///< how many k the operand has; used by pairs
  int width = 0;
  LaneAxis axis = LaneAxis::k;
  const LoadOperand* load = nullptr;
};

/// Where it goes: target[base + step * width + r], counted in pairs where a step is one. With `overrun`, stores may
/// spill up to a vector beyond the end of the micro-panel (in ascending order, so a later step overwrites the spill).
struct MicroPanelTarget {
  kernel::Buffer buffer;
  kernel::Value base;
  bool overrun = false;
};

/// What is packed of an operand, in vectors: elements converted, pairs put together.
class StepLoader {
 public:
  StepLoader(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from)
      : b_(b), lanes_(tile.lanes), from_(from), pairs_(tile.pairs), packed_(tile.packed()) {}

  /// `lanes` rows from `row` on at one step of k.
  kernel::Value of_rows(kernel::Value row, kernel::Value step, kernel::Value mask) const;
  /// One row at `lanes` steps of k. With masks of k, of both halves of the elements, what is out of range is zero.
  kernel::Value of_row(kernel::Value row, kernel::Value step, const kernel::Value (&masks)[2]) const;

 private:
  kernel::Value load(kernel::Value row, kernel::Value k, kernel::Value mask) const;

  kernel::Builder& b_;
  int lanes_;
  const MicroPanelSource& from_;
  bool pairs_;
  DType packed_;
};

/// For tiles: target.buffer[base + r * stride + k] for the rows row .. row + width, a multiple of 16, and the steps
/// k0 .. k0 + depth, which are pairs. Beyond the last row that one is repeated; beyond the last k there are zeros.
/// Terms of split bf16 have a layout of their own, from base on: see gemm_split_bf16.h.
struct RowsTarget {
  kernel::Buffer buffer;
  kernel::Value base, stride;
};
void emit_pack_rows(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from, const RowsTarget& to);
/// A whole left operand for tiles.
void emit_pack_row_blocks(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer packed,
                          LaneAxis axis, const LoadOperand& load);

/// Copies a micro-panel. Elements of rows beyond the last may be anything, or are not written: nobody uses what
/// they contribute to.
void emit_pack_micro_panel(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                           const MicroPanelTarget& to);

}  // namespace lathe::cpu
