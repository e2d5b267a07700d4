#pragma once

#include <optional>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/attention_plan.h"
#include "passes/gpu/gemm/wgmma/tensor_boxes.h"
#include "passes/gpu/gpu_context.h"

/// Operands of an attention by the warpgroups of sm_90a, as tiles in shared memory (see kernel::Wgmma). For every 64
/// of the depth, the tiles of all rows are stored one after the other; sizes are whole tiles.
namespace lathe::gpu {

inline int whole_tiles(int n) { return (n + kernel::swizzle_side - 1) / kernel::swizzle_side * kernel::swizzle_side; }

/// Returns the axis along which the elements of an operand of dtype `held` form chunks of 16 bytes, if any.
std::optional<LaneAxis> axis_of_chunks(const AttentionOperand& operand, DType held);
/// Whether TMA can copy its tiles.
bool are_boxes(const GpuInfo& gpu, const AttentionOperand& operand, DType held, bool sums_positions);

/// An operand whose tile stays in shared memory while others are streamed. It may be computed before it is stored
/// there.
class StationaryOperand {
 public:
  StationaryOperand(KernelContext& context, const GpuContext& lowering, const AttentionOperand& operand,
                    const Dim& depth, const AttentionTile& tile, int positions);

  static std::int64_t elements(int positions, int depth) { return std::int64_t{positions} * whole_tiles(depth); }
  const ElementwiseProgram& program() const { return loader_.operand().code.program; }
  int depth() const { return known_depth_; }
  void hoist() { loader_.hoist(); }
  /// Call it in a block loop, outside the thread loops.
  void allocate(const char* name);
  /// Stores the positions from `first` on; positions past the end repeat the last one of `count`, which must be
  /// positive. `threads` threads do this before the pipeline, which makes the data visible to the warpgroups when it
  /// starts.
  void bring(kernel::Value outer, kernel::Value first, kernel::Value count, kernel::Value thread, int threads);
  void clear(kernel::Value thread, int threads);  ///< stores zeros instead
  /// Returns the 64 rows of the thread's warpgroup, from k on.
  kernel::SwizzledTiles rows_of_warpgroup(kernel::Value thread, int k) const;
  /// Returns a right operand whose rows are the depth, from number `tile` times 64 on, summed over 64 positions.
  kernel::SwizzledTiles summed_positions(kernel::Value tile, int position) const;

 private:
  kernel::Builder& b_;
  OperandLoader loader_;
  Dim depth_;
  AttentionTile tile_;
  int known_depth_, positions_;
  kernel::Buffer shared_;
};

/// An operand whose tiles go through the pipeline, copied by TMA: `rows` rows, `depth` deep. Rows are its positions;
/// with `sums_positions`, the positions are the depth.
class StreamedOperand {
 public:
  StreamedOperand(KernelContext& context, const AttentionOperand& operand, bool sums_positions, int rows, int depth)
      : context_(context),
        operand_(operand),
        sums_positions_(sums_positions),
        rows_(whole_tiles(rows)),
        depth_(whole_tiles(depth)) {}

  std::int64_t elements() const { return std::int64_t{rows_} * depth_; }  ///< per stage
  const ElementwiseProgram& program() const { return operand_.code.program; }
  const AttentionOperand& operand() const { return operand_; }
  /// Call it after the buffers are declared.
  void map(const AttentionPlan& plan);
  /// Call it in a block loop, outside the thread loops.
  void allocate(DType held, int stages, const char* name);
  /// Starts to copy a tile to a slot, in the producer of a stage.
  void copy(kernel::Value slot, kernel::Value outer, kernel::Value position) const;
  /// Returns a right operand: the rows from `row` on, summed from k on. With `transposed`, it sums over a tile of 64
  /// rows, and the depth becomes the columns.
  kernel::SwizzledTiles right(kernel::Value slot, int row, int k, bool transposed = false) const;

 private:
  KernelContext& context_;
  const AttentionOperand& operand_;
  bool sums_positions_;
  int rows_, depth_;
  bool transposed_ = false;
  std::optional<BoxCopies> boxes_;
  kernel::Buffer shared_;
};

/// Starts sums = 64 rows of the left operand * rows of the right operand from `row` on, over the whole depth.
void multiply(kernel::Builder& b, kernel::Var sums, const StationaryOperand& left, kernel::Value thread,
              const StreamedOperand& right, kernel::Value slot, int row);

}  // namespace lathe::gpu
