#pragma once

#include <vector>

#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/attention_operand.h"

namespace lathe::gpu {

/// How a block of threads shares a tile of an attention's scores: 16 x 16 threads, each with `own` neighbouring rows
/// and as many neighbouring columns. What a product sums over passes through shared memory `steps` at a time.
struct AttentionTile {
  static constexpr int side = 16, threads = side * side, steps = 16;
  DType compute = f32;
  DType held = f32;  ///< in shared memory: bf16 or f16 where tensor cores multiply, else as computed

  bool tensor_cores() const { return held != compute; }
  int own() const { return compute == f64 ? 2 : 4; }
  int span() const { return side * own(); }  ///< rows, and columns, of a tile
  /// From one line of `width` elements in shared memory to the next: padded against bank conflicts.
  int line(int width) const { return width + (tensor_cores() ? 8 : own()); }
};

/// What a thread holds of a tile of 64 rows that tensor cores make: a warp has 16 rows and half of the columns, of
/// which a thread has pairs of neighbours: see kernel::sum_place.
struct WarpPart {
  WarpPart(kernel::Value slot, int width);
  int pairs() const { return columns / 4; }
  kernel::Value pair_row(kernel::Value pair) const;
  kernel::Value pair_column(kernel::Value pair) const;

  static constexpr int rows = 16;
  int columns;
  kernel::Value row, column, lane;  ///< the first ones of the warp; the thread's number in it
};

/// A thread of the block: its number, the rows that it has (y of 16) and the columns (x of 16).
struct AttentionThread {
  kernel::Value slot, y, x;
};

/// An operand of a product on its way through shared memory: at each of 16 steps `width` elements. The next steps'
/// elements are on their way to the thread's registers while the present ones are multiplied.
class StagedOperand {
 public:
  /// `depth_is_step`: steps go along the depth and elements are positions; else the other way round.
  StagedOperand(OperandLoader& loader, const AttentionTile& tile, bool depth_is_step, int width);

  std::int64_t shared_elements() const { return std::int64_t{AttentionTile::steps} * tile_.line(width_); }
  /// Where it passes through; threads store there between barriers.
  void pass_through(kernel::Buffer memory) { memory_ = memory; }
  /// Declares the thread's registers.
  void begin();
  /// Loads what the thread brings of `steps` steps and `width` elements from these on; zeros beyond the ends.
  void bring(kernel::Value outer, kernel::Value first_element, kernel::Value first_step, kernel::Value slot);
  void put(kernel::Value slot);
  kernel::Value load(kernel::Value step, kernel::Value element, int lanes) const;
  /// The steps that lie there, of `rows` elements from `first` on, for tensor cores.
  kernel::Builder::Matrix matrix(kernel::Value first, int rows) const;

 private:
  struct Piece {
    kernel::Value number, step, element;
  };
  Piece piece(kernel::Value slot, int round) const;
  int pieces() const { return width_ * AttentionTile::steps / tile_.own(); }
  /// body(piece, round) for what the thread brings.
  void each(kernel::Value slot, const std::function<void(const Piece&, kernel::Var)>& body);

  OperandLoader& loader_;
  kernel::Builder& b_;
  AttentionTile tile_;
  bool depth_is_step_, along_steps_;
  int width_;
  kernel::Buffer memory_;
  std::vector<kernel::Var> registers_;
};

}  // namespace lathe::gpu
