#pragma once

#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/product_operands.h"

namespace lathe::gpu {

/// What the schedules of a contraction with its epilogue have in common: the kernel under construction, a block for
/// every tile of the result, the operands' elements, and what becomes of a sum.
class ProductParts {
 public:
  /// An operand, and where a tile of it lies in shared memory.
  struct Side {
    const ProductOperand& operand;
    ElementwiseEmitter& loads;
    ElementwiseEmitter::Scope top;
    Dim rows;
    kernel::Buffer shared = {};

    bool along_k() const { return operand.axis == LaneAxis::k; }
  };
  /// Of a tile's first element.
  struct Position {
    kernel::Value batch, m, n;
  };

  ProductParts(const LoweringContext& lowering, const Region& region);

  /// Runs `block` for each tile of rows x columns, in a loop over the grid; gives the kernel. What it needs of the
  /// operands and of the epilogue is declared.
  KernelContext::Built tiles(int rows, int columns, const std::function<void(const Position&)>& block);

  /// The tiles of a result, by splits of what is contracted: how many there are, and what number i is.
  struct Tiling {
    int rows, columns, splits;
    kernel::Value down, across, each, count;  ///< each: tiles of a split
  };
  std::pair<Position, kernel::Value> unit(const Tiling& tiling, kernel::Value i);

  /// Sums over splits of what is contracted, in f32 in a program buffer: [split][batch][row][column], rows and
  /// columns rounded up to whole tiles.
  struct Partial {
    int buffer = -1, splits = 1;
    std::int64_t rows = 0, columns = 0;
  };
  /// As tiles(), for each split: `block` is given its number. It stores to the partial sums, and nothing goes through
  /// the epilogue.
  KernelContext::Built tiles_of_splits(int rows, int columns, const Partial& partial,
                                       const std::function<void(const Position&, kernel::Value)>& block);
  /// As one of these, of which `blocks` makes all blocks; with no partial sums there is one split.
  KernelContext::Built tiles_in_turn(int rows, int columns, const Partial* partial,
                                     const std::function<void(const Tiling&)>& blocks);
  /// The kernel that adds the splits in order; their sums go through the epilogue.
  KernelContext::Built combine(const Partial& partial);
  /// Loads as many neighbours along the operand's axis as the variable has lanes, from (row, k) on; zeros beyond the
  /// ends.
  void bring(Side& side, kernel::Value batch, kernel::Value row, kernel::Value k, kernel::Var into);
  /// The epilogue of neighbours along n, from (m, n) on, as far as they lie in the result: sums that were rounded to
  /// its dtype, in the computing type.
  void finish(kernel::Value batch, kernel::Value m, kernel::Value n, kernel::Value sums);
  /// The same where all of them, or those of the mask, are known to be elements of the result.
  void finish_inside(kernel::Value batch, kernel::Value m, kernel::Value n, kernel::Value sums,
                     kernel::Value mask = {});
  /// Whether the kernel writes nothing to the storage of a node.
  bool only_reads(ir::ValueId node) const;

  /// Where the sums of a tile's split begin.
  kernel::Value first_partial(const Partial& partial, const Position& at, kernel::Value number);

  /// Memory for the sums of `splits`; m, n and the number of batches are known.
  Partial partial(int rows, int columns, int splits) const;

  kernel::Builder& builder() { return context_.builder; }
  KernelContext& context() { return context_; }
  int buffer_of(ir::ValueId node) const { return lowering_.buffer_of(node); }

 private:
  void start(const std::vector<const ElementwiseProgram*>& programs);
  Tiling tiling(int rows, int columns, int splits);
  void for_tiles(int rows, int columns, int splits, const std::function<void(const Position&, kernel::Value)>& block);
  KernelContext::Built take();

  const LoweringContext& lowering_;

 public:
  const ProductOperands operands;

 private:
  KernelContext context_;
  ElementwiseProgram program_;
  ElementwiseEmitter epilogue_, left_loads_, right_loads_;
  ElementwiseEmitter::Scope top_;

 public:
  Side left, right;
  kernel::Value m, n, k;  ///< sizes, once tiles() runs
};

}  // namespace lathe::gpu
