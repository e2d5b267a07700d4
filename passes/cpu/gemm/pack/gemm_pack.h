#pragma once

#include <functional>
#include <vector>

#include "passes/cpu/gemm/gemm.h"
#include "passes/cpu/vector_transpose.h"

/// Parts of the matmul schedules that several files share.
namespace lathe::cpu {

/// Whether a value is a known multiple of `step`.
bool known_multiple(const kernel::Builder& b, kernel::Value value, std::int64_t step);

/// Emits body(i) for i in lo .. hi, unrolled by `factor`, and a loop for the rest.
void for_unrolled(kernel::Builder& b, kernel::Value lo, kernel::Value hi, int factor,
                  const kernel::Builder::Body& body);

/// Interleaves the lanes of two vectors.
kernel::Value interleave(kernel::Builder& b, kernel::Value even, kernel::Value odd);

/// Returns the lane sums of as many vectors as each has lanes (a power of two): lane j is the sum of the lanes of
/// vectors[j]. Each level adds halves of two vectors, so that n sums need 3 n operations.
kernel::Value sums_of_lanes(kernel::Builder& b, std::vector<kernel::Value> vectors);

/// Returns the number of steps of k: k itself, or pairs.
kernel::Value steps_of_k(kernel::Builder& b, const GemmTile& tile, kernel::Value k);

/// One micro-panel of an operand: rows row .. row + width of a batch, steps k0 .. k0 + depth.
struct MicroPanelSource {
  kernel::Value batch, row, rows, k0, depth;  ///< rows: the number of rows of the operand; row < rows
  kernel::Value k{};                          ///< the number of k of the operand; used by pairs
  int width = 0;
  LaneAxis axis = LaneAxis::k;
  const LoadOperand* load = nullptr;
};

/// Destination of a micro-panel: target[base + step * width + r], counted in pairs if a step is a pair. With
/// `overrun`, stores may extend up to a vector past the end of the micro-panel, in ascending order, so that a later
/// step overwrites the excess.
struct MicroPanelTarget {
  kernel::Buffer buffer;
  kernel::Value base;
  bool overrun = false;
};

/// Loads vectors of an operand in packed form: elements converted, pairs combined.
class StepLoader {
 public:
  StepLoader(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from)
      : b_(b), lanes_(tile.lanes), from_(from), pairs_(tile.pairs()), packed_(tile.packed()) {}

  /// Returns `lanes` rows from `row` on at one step of k.
  kernel::Value of_rows(kernel::Value row, kernel::Value step, kernel::Value mask) const;
  /// Returns one row at `lanes` steps of k. With masks of k, one per half of the elements, elements out of range are
  /// zero.
  kernel::Value of_row(kernel::Value row, kernel::Value step, const kernel::Value (&masks)[2]) const;

 private:
  kernel::Value load(kernel::Value row, kernel::Value k, kernel::Value mask) const;

  kernel::Builder& b_;
  int lanes_;
  const MicroPanelSource& from_;
  bool pairs_;
  DType packed_;
};

/// Destination for tiles: buffer[base + r * stride + k] for the rows row .. row + width, a multiple of 16, and the
/// steps k0 .. k0 + depth, which are pairs. Rows past the last one repeat it; k past the last one are zero. Terms of
/// split bf16 have their own layout, from base on: see gemm_split_bf16.h.
struct RowsTarget {
  kernel::Buffer buffer;
  kernel::Value base, stride;
};
void emit_pack_rows(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from, const RowsTarget& to);
/// Packs a whole left operand for tiles.
void emit_pack_row_blocks(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer packed,
                          LaneAxis axis, const LoadOperand& load);

/// Copies a micro-panel. Elements of rows past the last one are undefined or not written, because their results are
/// not used.
void emit_pack_micro_panel(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                           const MicroPanelTarget& to);

}  // namespace lathe::cpu
