#include "passes/gpu/reduction/along_dim_kernel.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

AlongDimKernel::AlongDimKernel(const std::string& name, const AlongDim& along_dim, bool from_end, int result_buffer)
    : along(along_dim),
      reverse(from_end),
      result(result_buffer),
      context(name, KernelRole::scan),
      b(context.builder) {}

void AlongDimKernel::declare(const std::vector<const ElementwiseProgram*>& programs, const GpuContext& lowering) {
  declare_buffers(context, programs, lowering);
  context.declare(result, along.node.type.dtype, false, true);
}

KernelContext::Built AlongDimKernel::loops(const std::function<void(Value, Value)>& column,
                                           const std::function<std::function<void(Value)>(Value)>& row) {
  size = context.dim(along.size);
  columns = context.dim(along.columns);
  if (along.post.empty()) {
    const auto block = [&](Value i) { b.for_loop(0, block_threads, 1, row(i), LoopKind::thread_x); };
    b.for_loop(0, context.dim(along.rows), 1, block, LoopKind::block_x);
  } else {
    for_threads(b, context.dim(along.rows) * columns, 1, [&](Value i) { column(i / columns, i % columns); });
  }
  return context.finish();
}

void AlongDimKernel::for_turns(Value x, const std::function<void(Value, Value)>& element) {
  b.for_loop(0, b.ceil_div(size, block_threads), 1, [&](Value part) {
    const Value turn = part * block_threads + x, exists = turn < size;
    element(turn, exists);
  });
}

void AlongDimKernel::store(Value at, Value value) {
  b.store(context.buffer(result), at, b.cast(value, along.node.type.dtype));
}

}  // namespace lathe::gpu
