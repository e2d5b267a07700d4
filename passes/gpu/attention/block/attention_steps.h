#pragma once

#include <optional>

#include "passes/gpu/attention/block/staged_operand.h"

namespace lathe::gpu {

/// Runs the matmuls of a tile in turn, some steps at a time. With tensor cores, steps go through two slots: while
/// those in one slot are multiplied, the next ones, of the same or the following matmul, are copied to the other.
/// Without tensor cores there is one slot.
class AttentionSteps {
 public:
  struct Product {
    std::vector<StagedOperand*> operands;
    Dim count;  ///< total number of steps

    bool copies() const;
    int steps() const { return operands[0]->steps(); }
  };

  AttentionSteps(KernelContext& context, const AttentionTile& tile);
  int slots() const { return tile_.tensor_cores() ? 2 : 1; }

  /// Declares the thread's registers.
  void begin();
  /// Starts the matmuls of the tile `here`, in the order in which they will run. `next`: the following tile, if
  /// `more` (a bool); empty: unknown.
  struct Next {
    ScorePosition tile;
    kernel::Value more;
  };
  void start(std::vector<const Product*> products, const ScorePosition& here, std::optional<Next> next,
             kernel::Value thread);
  /// Emits multiplied(slot, first) for the steps from each `first` on, which are in that slot. All threads of the
  /// block call it. With one slot it ends with a barrier; with two, threads may still be multiplying.
  void run(const Product& product, kernel::Value thread,
           const std::function<void(kernel::Value slot, kernel::Value first)>& multiplied);

 private:
  void copy(const Product& product, const ScorePosition& tile, kernel::Value step, kernel::Value thread,
            kernel::Value slot);
  void follow(const Product* after, kernel::Value thread, kernel::Value slot);
  static bool goes(const Product& product);

  KernelContext& context_;
  kernel::Builder& b_;
  AttentionTile tile_;
  std::optional<kernel::Var> next_slot_;   ///< slot of the next steps
  std::optional<kernel::Var> prefetched_;  ///< whether copies of the next tile are in flight
  std::vector<const Product*> products_;
  std::size_t at_ = 0;      ///< index in products_ of the next one to run
  bool under_way_ = false;  ///< copies of its first steps have been started
  ScorePosition here_;
  std::optional<Next> next_;
};

/// Returns the maximum number of steps (64, 32 or 16) of `width` elements each that fit into a slot. With `along`,
/// steps are adjacent in a row; otherwise each step is a row.
int copied_steps(const AttentionStages& stages, const AttentionTile& tile, int width, bool along, const Dim& count);

}  // namespace lathe::gpu
