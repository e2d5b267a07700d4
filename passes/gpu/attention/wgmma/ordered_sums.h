#pragma once

#include <vector>

#include "passes/gpu/attention/wgmma/wgmma_operands.h"
#include "passes/gpu/attention/wgmma/wgmma_outputs.h"

namespace lathe::gpu {

/// The tiles of rows that each block of columns adds to, and the blocks that add to each tile. If all rows skip
/// columns outside the bounds, a block has the tiles that may contribute, and each tile has at least one block: the
/// first one has those that no column contributes to because of the upper bound, and the last one those because of
/// the lower bound. Otherwise each block has all tiles.
class BlockOrder {
 public:
  /// `skips`: whether all rows skip, for all outer indices of a block; `blocks`: number of blocks along the columns.
  BlockOrder(KernelContext& context, const AttentionPlan& plan, const WgmmaOutputTile& tile, kernel::Value skips,
             kernel::Value blocks);

  struct Tiles {
    kernel::Value first, end;
  };
  Tiles tiles(kernel::Value block) const;
  /// Returns how many blocks add to the tile of rows from `position` on before this one.
  kernel::Value rank(kernel::Value block, kernel::Value position) const;

 private:
  KernelContext& context_;
  kernel::Builder& b_;
  const AttentionPlan& plan_;
  const ColumnBounds& bounds_;
  int rows_, columns_;                  ///< of a tile, of a block
  kernel::Value skips_, last_, lower_;  ///< the last block; the lower bound
};

/// Sums over columns (dQ) of a kernel whose blocks have columns of their own: each block adds its share to memory, in
/// the order of the columns (kernel::in_block_turn). A warpgroup stores its weights in shared memory, where both
/// warpgroups find those of all columns of the block as a left operand. The right operand are the stationary columns.
/// Each warpgroup computes the sums of half of the rows of a tile (depths up to 64), or of half of the depth, and
/// hands them to the last warpgroup of the block, which adds them to memory while the next tile is multiplied.
///
/// Sums in memory are f32, in the layout of the threads' registers. The first block to add stores its sums, so
/// nothing clears them. A kernel of their own passes the totals to the epilogue.
class OrderedSums {
 public:
  /// Program buffers: the sums, and the turns of the blocks (see WaitBlockTurn), which are 0 when the kernel starts.
  struct Memory {
    int sums = -1, turns = -1;
    static Memory of(const AttentionPlan& plan, const WgmmaOutputTile& tile);
  };
  /// `columns`: the operand that is multiplied by the weights.
  OrderedSums(KernelContext& context, const AttentionPlan& plan, const WgmmaOutputTile& tile, const Memory& memory,
              const StationaryOperand& columns);

  kernel::Var sums() const { return sums_; }
  void declare_buffers();
  void allocate();  ///< call it in a block loop, outside the thread loops
  void declare();   ///< allocates the registers, inside the pipeline

  /// Stores the weights of the rows of a tile from `first` on; `number` counts the tiles of the block.
  void keep(kernel::Buffer weights, kernel::Value thread, kernel::Value number, int first);
  /// Waits for the other warpgroup's weights and starts the products.
  void multiply(kernel::Value thread, kernel::Value number);
  /// Hands the sums over, to be added in turn.
  void add(kernel::Value outer, kernel::Value position, kernel::Value rank, kernel::Value thread);

 private:
  std::int64_t weights_of_tile() const { return std::int64_t{tile_.rows} * tile_.blocks.positions(); }
  void add_to_memory(kernel::Value tile, kernel::Value is_first, kernel::Value own);

  KernelContext& context_;
  kernel::Builder& b_;
  const AttentionPlan& plan_;
  WgmmaOutputTile tile_;
  Memory memory_;
  const StationaryOperand& columns_;
  kernel::Buffer weights_, handed_;
  kernel::Var sums_;
};

/// Clears the turns before the kernel.
KernelContext::Built lower_clear_turns(const AttentionPlan& plan, const OrderedSums::Memory& memory,
                                       const WgmmaOutputTile& tile);
/// Passes the totals to the epilogue after it.
KernelContext::Built lower_ordered_totals(const AttentionPlan& plan, const OrderedSums::Memory& memory,
                                          const WgmmaOutputTile& tile, const AttentionParts::OutputProduct& part);

}  // namespace lathe::gpu
