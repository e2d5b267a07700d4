#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/machine/wgmma.h"
#include "passes/gpu/attention/block/attention_block_output.h"

namespace lathe::gpu {

/// A product that makes an output of an attention, by warpgroups: 64 positions a warpgroup, in parts of columns of
/// the depth that one wgmma has; of the last ones no more than are needed. Weights are its left operand, in
/// registers.
class WgmmaSums {
 public:
  WgmmaSums(KernelContext& context, const LoweringContext& lowering, const AttentionParts::OutputProduct& part);

  /// Registers of a thread for a result of so much depth, by part.
  static std::vector<int> lanes(int depth);
  static int registers(
      const std::vector<const AttentionParts::OutputProduct*>& outputs);  ///< of products of known depths
  const AttentionParts::OutputProduct& part() const { return output_.part(); }
  void hoist() { output_.hoist(); }
  void declare();  ///< the registers, in the pipeline
  void clear();
  const std::vector<kernel::Var>& vars() const { return sums_; }
  /// Starts to add weights * what `right` gives from a position of the depth on.
  void add(kernel::Value weights, const std::function<kernel::SwizzledTiles(int depth)>& right);
  /// Multiplies or divides the sums by a value of each row of the thread.
  void scale(ScalarOp op, const std::vector<kernel::Value>& by);
  /// Hands the sums of the block's positions from `first` on to what reads the product, two neighbours at a time.
  void finish(kernel::Value outer, kernel::Value first, kernel::Value thread);

 private:
  kernel::Builder& b_;
  AttentionOutput output_;
  std::vector<kernel::Var> sums_;
};

}  // namespace lathe::gpu
