#pragma once

#include "passes/gpu/gpu_context.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/product_operands.h"

namespace lathe::gpu {

/// Code that the schedules of a contraction with its epilogue share: the kernel under construction, one block per
/// tile of the result, the operands' elements, and the epilogue of sums.
class ProductParts {
 public:
  /// An operand, and the shared memory of its tile.
  struct Side {
    const ProductOperand& operand;
    ElementwiseEmitter& loads;
    ElementwiseEmitter::Scope top;
    Dim rows;
    kernel::Buffer shared = {};

    bool along_k() const { return operand.axis == LaneAxis::k; }
  };
  /// Position of a tile's first element.
  struct Position {
    kernel::Value batch, m, n;
  };

  ProductParts(const GpuContext& lowering, const Region& region);

  /// Runs `block` for each tile of rows x columns, in a loop over the grid, and returns the kernel. Declares the
  /// buffers of the operands and the epilogue.
  KernelContext::Built tiles(int rows, int columns, const std::function<void(const Position&)>& block);

  /// The tiles of a result, for each split of the contracted dim; unit() returns the position and the split of number
  /// i.
  struct Tiling {
    int rows, columns, splits;
    kernel::Value down, across, each, count;  ///< each: tiles per split
  };
  std::pair<Position, kernel::Value> unit(const Tiling& tiling, kernel::Value i);

  /// Sums over splits of the contracted dim, in f32 in a program buffer: [split][batch][row][column], with rows and
  /// columns rounded up to whole tiles.
  struct Partial {
    int buffer = -1, splits = 1;
    std::int64_t rows = 0, columns = 0;
  };
  /// Like tiles(), for each split, whose number `block` receives. It stores partial sums; there is no epilogue.
  KernelContext::Built tiles_of_splits(int rows, int columns, const Partial& partial,
                                       const std::function<void(const Position&, kernel::Value)>& block);
  /// Like tiles() or tiles_of_splits(), but `blocks` emits all blocks. Without partial sums there is one split.
  KernelContext::Built tiles_in_turn(int rows, int columns, const Partial* partial,
                                     const std::function<void(const Tiling&)>& blocks);
  /// Returns the kernel that adds the splits in order and runs the epilogue on their sums.
  KernelContext::Built combine(const Partial& partial);
  /// Loads adjacent elements along the operand's axis, as many as the variable has lanes, from (row, k) on; zeros
  /// past the ends.
  void bring(Side& side, kernel::Value batch, kernel::Value row, kernel::Value k, kernel::Var into);
  /// Runs the epilogue for adjacent results along n, from (m, n) on, if they are inside the result. `sums` are
  /// rounded to its dtype, in the compute type.
  void finish(kernel::Value batch, kernel::Value m, kernel::Value n, kernel::Value sums);
  /// Runs the epilogue if all of them, or those of the mask, are known to be elements of the result.
  void finish_inside(kernel::Value batch, kernel::Value m, kernel::Value n, kernel::Value sums,
                     kernel::Value mask = {});
  /// Whether the kernel writes nothing to the storage of a node.
  bool only_reads(ir::ValueId node) const;

  /// Returns where the sums of a tile's split start.
  kernel::Value first_partial(const Partial& partial, const Position& at, kernel::Value number);

  /// Allocates memory for the sums of `splits`; m, n and the number of batches must be known.
  Partial partial(int rows, int columns, int splits) const;

  kernel::Builder& builder() { return context_.builder; }
  KernelContext& context() { return context_; }
  int buffer_of(ir::ValueId node) const { return lowering_.buffer_of(node); }

 private:
  void start(const std::vector<const ElementwiseProgram*>& programs);
  Tiling tiling(int rows, int columns, int splits);
  void for_tiles(int rows, int columns, int splits, const std::function<void(const Position&, kernel::Value)>& block);
  KernelContext::Built take();

  const GpuContext& lowering_;

 public:
  const ProductOperands operands;

 private:
  KernelContext context_;
  ElementwiseProgram program_;
  ElementwiseEmitter epilogue_, left_loads_, right_loads_;
  ElementwiseEmitter::Scope top_;

 public:
  Side left, right;
  kernel::Value m, n, k;  ///< sizes, set by tiles()
};

}  // namespace lathe::gpu
