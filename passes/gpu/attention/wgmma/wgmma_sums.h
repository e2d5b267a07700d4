#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/block/attention_block_output.h"
#include "passes/gpu/gpu_context.h"

namespace lathe::gpu {

/// Passes a thread's sums of 64 positions, from `position` on, to the epilogue, two adjacent depths at a time. `sums`
/// are `lanes` elements in the layout of wgmma; their depths start at `depth`.
void finish_sums(kernel::Builder& b, AttentionOutput& output, kernel::Buffer sums, int lanes, kernel::Value outer,
                 kernel::Value position, kernel::Value depth, kernel::Value thread);

/// An output matmul of an attention by warpgroups: 64 positions per warpgroup. The depth is split into parts with as
/// many columns as one wgmma has; the last part has no more than needed. Weights are the left operand, in registers.
class WgmmaSums {
 public:
  WgmmaSums(KernelContext& context, const GpuContext& lowering, const AttentionParts::OutputProduct& part);

  /// Returns the registers of a thread, by part, for a result of this depth.
  static std::vector<int> lanes(int depth);
  static int registers(
      const std::vector<const AttentionParts::OutputProduct*>& outputs);  ///< of matmuls with known depths
  const AttentionParts::OutputProduct& part() const { return output_.part(); }
  void hoist() { output_.hoist(); }
  void declare();  ///< allocates the registers, inside the pipeline
  void clear();
  const std::vector<kernel::Var>& vars() const { return sums_; }
  /// Starts to add weights * right(depth) for each part; `depth` is the first one of the part.
  void add(kernel::Value weights, const std::function<kernel::SwizzledTiles(int depth)>& right);
  /// Multiplies or divides the sums by one value per row of the thread.
  void scale(ScalarOp op, const std::vector<kernel::Value>& by);
  /// Passes the sums of the block's positions, which start at `first`, to the epilogue, two adjacent ones at a time.
  void finish(kernel::Value outer, kernel::Value first, kernel::Value thread);

 private:
  kernel::Builder& b_;
  AttentionOutput output_;
  std::vector<kernel::Var> sums_;
};

}  // namespace lathe::gpu
