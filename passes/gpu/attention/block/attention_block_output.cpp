#include "passes/gpu/attention/block/attention_block_output.h"

#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;

AttentionOutput::AttentionOutput(KernelContext& context, const GpuContext& lowering,
                                 const AttentionParts::OutputProduct& part)
    : context_(context),
      part_(part),
      dtype_(lowering.graph[part.node].type.dtype),
      emitter_(context, part.epilogue, lowering.buffer_of),
      top_(emitter_, {}) {}

void AttentionOutput::finish(Value outer, Value position, Value depth, Value sums) {
  kernel::Builder& b = context_.builder;
  const Value depths = context_.dim(part_.depth);
  const int lanes = sums.type.lanes;
  b.if_(position < positions() && depth < depths, [&] {
    unmasked_or_masked(b, depth, depths, lanes, part_.depth, [&](Value mask) {
      ElementwiseEmitter::Scope scope(
          emitter_,
          {{part_.outer_dims, outer, 1}, {part_.position_dims, position, 1}, {part_.depth_dims, depth, lanes}}, mask,
          &top_);
      scope.bind(0, rounded(b, sums, dtype_));
      emitter_.store_all(scope);
    });
  });
}

}  // namespace lathe::gpu
