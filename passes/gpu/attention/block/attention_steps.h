#pragma once

#include <optional>

#include "passes/gpu/attention/block/staged_operand.h"

namespace lathe::gpu {

/// The products of a tile in turn, each some steps at a time. On tensor cores steps pass through two slots: while
/// those in one are multiplied, the next ones, of the same product or of the one that follows, are on their way to
/// the other. Without tensor cores there is one slot.
class AttentionSteps {
 public:
  struct Product {
    std::vector<StagedOperand*> operands;
    Dim count;  ///< of steps in all

    bool copies() const;
    int steps() const { return operands[0]->steps(); }
  };

  AttentionSteps(KernelContext& context, const AttentionTile& tile);
  int slots() const { return tile_.tensor_cores() ? 2 : 1; }

  /// Declares the thread's registers.
  void begin();
  /// The products of the tile `here`, in the order in which they will run. `next`: the tile that follows, if `more`
  /// (a bool); empty: none that is known.
  struct Next {
    ScorePosition tile;
    kernel::Value more;
  };
  void start(std::vector<const Product*> products, const ScorePosition& here, std::optional<Next> next,
             kernel::Value thread);
  /// multiplied(slot, first): for the steps from each `first` on, which lie in that slot. All threads of the block
  /// call it. With one slot it ends with a barrier; with two, threads may still be multiplying.
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
  std::optional<kernel::Var> next_slot_;   ///< where the next steps go
  std::optional<kernel::Var> prefetched_;  ///< whether copies of the next tile are under way
  std::vector<const Product*> products_;
  std::size_t at_ = 0;      ///< in products_: which runs next
  bool under_way_ = false;  ///< copies of its first steps have been started
  ScorePosition here_;
  std::optional<Next> next_;
};

/// The most steps, of 64, 32 or 16, that a slot holds of `width` elements each, steps lying side by side in a row
/// where `along`, else one in each row.
int copied_steps(const GpuInfo& gpu, const AttentionTile& tile, int width, bool along, const Dim& count);

}  // namespace lathe::gpu
