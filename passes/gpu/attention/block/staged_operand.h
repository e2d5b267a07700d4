#pragma once

#include "ir/kernel/intrinsics/gpu/mma.h"
#include "passes/gpu/attention/block/attention_tile.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/attention/attention_operand.h"

namespace lathe::gpu {

/// Moves an operand of an attention's matmul through shared memory: `width` elements at each of some steps. They are
/// copied there directly, or loaded to registers and then stored.
class StagedOperand {
 public:
  /// `depth_is_step`: steps go along the depth and elements are positions; otherwise vice versa.
  StagedOperand(OperandLoader& loader, const AttentionTile& tile, bool depth_is_step, int width);

  /// Whether its memory layout suits tensor cores: chunks of 16 bytes at multiples of 16 bytes.
  bool can_be_copied() const;
  /// Sets the number of steps in a slot, and whether they are copied.
  void pass(int steps, bool copied);
  int steps() const { return steps_; }
  bool copied() const { return copied_; }

  std::int64_t shared_elements() const { return shared_rows() * stride(); }
  /// Sets the shared memory, in slots that start this many elements apart.
  void pass_through(kernel::Buffer memory, std::int64_t slot_elements);
  /// Declares the thread's registers. `first_depth`: the first depth, if elements go along the depth.
  void begin(kernel::Value first_depth);

  /// Starts to copy the thread's part of the tile's steps from `step` on; zeros past the ends.
  void copy(const ScorePosition& tile, kernel::Value step, kernel::Value thread, kernel::Value slot);
  /// Loads the thread's part to registers; put() stores it.
  void bring(const ScorePosition& tile, kernel::Value step, kernel::Value thread);
  void put(kernel::Value thread, kernel::Value slot);

  /// Returns elements of the only slot.
  kernel::Value load(kernel::Value step, kernel::Value element, int lanes) const;
  /// Returns 16 steps of `rows` elements from `first` on, for tensor cores.
  kernel::MmaOperand matrix(kernel::Value slot, int step, kernel::Value first, int rows) const;

 private:
  struct Chunk {
    kernel::Value number, step, element;
  };
  struct Point {
    kernel::Value position, depth;
  };
  bool in_rows_of_steps() const { return copied_ && along_steps_; }
  std::int64_t shared_rows() const { return in_rows_of_steps() ? width_ : steps_; }
  int stride() const { return tile_.stride(in_rows_of_steps() ? steps_ : width_); }
  int chunk_length() const;
  int chunks() const { return width_ * steps_ / chunk_length(); }
  int rounds() const { return (chunks() + AttentionTile::threads - 1) / AttentionTile::threads; }
  /// Emits body(chunk, round) for each chunk that the thread moves.
  void each(kernel::Value thread, const std::function<void(const Chunk&, int)>& body);
  Point point(const ScorePosition& tile, kernel::Value step, const Chunk& chunk) const;
  Dim positions() const { return loader_.operand().code.program.points(loader_.operand().position); }

  OperandLoader& loader_;
  kernel::Builder& b_;
  AttentionTile tile_;
  bool depth_is_step_, along_steps_;
  static constexpr int usual_steps = 16;
  int width_, steps_ = usual_steps;
  bool copied_ = false;
  kernel::Buffer memory_;
  std::int64_t slot_elements_ = 0;
  kernel::Value first_depth_;
  std::vector<kernel::Var> registers_;
};

}  // namespace lathe::gpu
