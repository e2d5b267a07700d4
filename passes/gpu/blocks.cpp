#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

void for_threads(kernel::Builder& b, Value n, int width, const std::function<void(Value)>& body) {
  const int step = block_threads * width;
  const auto block = [&](Value first) {
    const auto thread = [&](Value offset) {
      const Value at = first + offset;
      b.if_(at < n, [&] { body(at); });
    };
    b.for_loop(0, step, width, thread, LoopKind::thread_x);
  };
  b.for_loop(0, n, step, block, LoopKind::block_x);
}

void unmasked_or_masked(kernel::Builder& b, Value at, Value end, int lanes, const Dim& size,
                        const std::function<void(Value)>& body) {
  const auto known = size.value();
  if (lanes == 1 || (known && *known % lanes == 0)) return body({});
  b.if_(at + lanes <= end, [&] { body({}); }, [&] { body(b.tail_mask(end - at, lanes)); });
}

SharedTree::SharedTree(kernel::Builder& b, const std::vector<DType>& dtypes, int threads) : b_(b) {
  for (const DType dtype : dtypes) memory_.push_back(b.alloc(dtype, threads, kernel::Space::shared, "partial"));
}

std::vector<Value> SharedTree::join(const std::vector<std::size_t>& which, const std::vector<ScalarOp>& ops,
                                    const std::vector<Value>& values, Value slot, Value place, int width) {
  if (width == 1) return values;
  for (std::size_t i = 0; i < which.size(); ++i) b_.store(memory_[which[i]], slot, values[i]);
  for (int half = width / 2; half >= 1; half /= 2) {
    b_.barrier();
    b_.if_(place < half, [&] {
      for (std::size_t i = 0; i < which.size(); ++i) {
        const kernel::Buffer memory = memory_[which[i]];
        const Value joined = b_.apply(ops[i], {b_.load(memory, slot), b_.load(memory, slot + half)});
        b_.store(memory, slot, joined);
      }
    });
  }
  b_.barrier();
  std::vector<Value> results;
  for (const std::size_t i : which) results.push_back(b_.load(memory_[i], slot - place));
  return results;
}

KernelContext::Built lower_copy(const VectorTarget& target, DType dtype, int from, int to, const Dim& elements) {
  KernelContext context("copy");
  context.declare(from, dtype, true, false);
  context.declare(to, dtype, false, true);
  kernel::Builder& b = context.builder;
  const int lanes = target.lanes(dtype);
  const Value n = context.dim(elements);
  for_threads(b, n, lanes, [&](Value at) {
    unmasked_or_masked(b, at, n, lanes, elements, [&](Value mask) {
      b.store(context.buffer(to), at, b.load(context.buffer(from), at, lanes, mask), mask);
    });
  });
  return context.finish();
}

}  // namespace lathe::gpu
