#pragma once

#include "passes/gpu/gpu_context.h"
#include "passes/lowering/attention/attention_parts.h"

namespace lathe::gpu {

/// The epilogue of an output matmul of an attention, inside one kernel.
class AttentionOutput {
 public:
  AttentionOutput(KernelContext& context, const GpuContext& lowering, const AttentionParts::OutputProduct& part);

  const AttentionParts::OutputProduct& part() const { return part_; }
  void hoist() { emitter_.hoist(top_); }
  kernel::Value positions() { return context_.dim(part_.epilogue.points(part_.position_dims)); }
  /// Passes sums of adjacent depths to the epilogue, if they are inside the result.
  void finish(kernel::Value outer, kernel::Value position, kernel::Value depth, kernel::Value sums);

 private:
  KernelContext& context_;
  const AttentionParts::OutputProduct& part_;
  DType dtype_;  ///< of the result
  ElementwiseEmitter emitter_;
  ElementwiseEmitter::Scope top_;
};

}  // namespace lathe::gpu
