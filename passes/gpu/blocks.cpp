#include "ir/kernel/intrinsics/gpu/exchange.h"
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

void set_inside(kernel::Builder& b, kernel::Var into, Value at, Value end, const Dim& size,
                const std::function<Value(Value)>& load) {
  const auto [dtype, lanes] = into.type;
  unmasked_or_masked(b, at, end, lanes, size, [&, dtype = dtype, lanes = lanes](Value mask) {
    const Value value = b.cast(load(mask), dtype);
    b.set(into, mask ? b.select(mask, value, b.constant(dtype, 0, lanes)) : value);
  });
}

std::vector<kernel::Var> zero_vectors(kernel::Builder& b, kernel::Type type, int count) {
  std::vector<kernel::Var> registers;
  for (int i = 0; i < count; ++i) registers.push_back(b.var(type, b.constant(type.scalar, 0, type.lanes)));
  return registers;
}

void clear(kernel::Builder& b, std::span<const kernel::Var> registers) {
  for (const kernel::Var& v : registers) b.set(v, b.constant(v.type.scalar, 0, v.type.lanes));
}

void multiply_add(kernel::Builder& b, std::span<const kernel::Var> sums, Value rows,
                  const std::vector<Value>& columns) {
  const bool floats = rows.type.scalar == f32 || rows.type.scalar == f64;
  auto sum = sums.begin();
  for (int r = 0; r < rows.type.lanes; ++r)
    for (const Value& column : columns) {
      const Value factor = b.broadcast(b.extract(rows, r), column.type.lanes);
      b.set(*sum, floats ? b.fma(factor, column, b.get(*sum)) : b.get(*sum) + factor * column);
      ++sum;
    }
}

Value reduce_in_warp(kernel::Builder& b, ScalarOp op, Value value, Value lane, int width) {
  const Value first = width < kernel::warp_threads ? lane / width * width : b.index(0);
  for (int half = width / 2; half >= 1; half /= 2)
    value = b.apply(op, {value, from_lane(b, value, first + (lane + half) % width)});
  return from_lane(b, value, first);
}

Value reduce_with_partners(kernel::Builder& b, ScalarOp op, Value value, Value thread, int width, int apart) {
  const Value lane = thread % kernel::warp_threads;
  for (int half = width / 2; half >= apart; half /= 2)
    value = b.apply(op, {value, from_lane(b, value, b.apply(ScalarOp::bit_xor, {lane, b.index(half)}))});
  return value;
}

SharedTree::SharedTree(kernel::Builder& b, const std::vector<DType>& dtypes, int threads) : b_(b) {
  for (const DType dtype : dtypes) memory_.push_back(b.alloc(dtype, threads, kernel::Space::shared, "partial"));
}

/// Reduces in shared memory until the values of `least` threads are left.
void SharedTree::reduce_halves(const std::vector<std::size_t>& which, const std::vector<ScalarOp>& ops, Value slot,
                               Value index, int width, int least) {
  for (int half = width / 2; half >= least; half /= 2) {
    b_.barrier();
    b_.if_(index < half, [&] {
      for (std::size_t i = 0; i < which.size(); ++i) {
        const kernel::Buffer memory = memory_[which[i]];
        b_.store(memory, slot, b_.apply(ops[i], {b_.load(memory, slot), b_.load(memory, slot + half)}));
      }
    });
  }
}

std::vector<Value> SharedTree::reduce(const std::vector<std::size_t>& which, const std::vector<ScalarOp>& ops,
                                      std::vector<Value> values, Value slot, Value index, int width) {
  constexpr int warp = kernel::warp_threads;
  if (width == 1) return values;
  const bool in_memory = width != warp;
  const auto put = [&] {
    for (std::size_t i = 0; i < which.size(); ++i) b_.store(memory_[which[i]], slot, values[i]);
  };
  const auto take = [&](Value at) {
    for (std::size_t i = 0; i < which.size(); ++i) values[i] = b_.load(memory_[which[i]], at);
  };
  if (in_memory) {
    put();
    reduce_halves(which, ops, slot, index, width, width > warp ? warp : 1);
  }
  if (width > warp) take(slot);
  if (width >= warp)
    for (std::size_t i = 0; i < which.size(); ++i) values[i] = reduce_in_warp(b_, ops[i], values[i], index, warp);
  if (!in_memory) return values;
  if (width > warp) b_.if_(equal(index, 0), put);
  b_.barrier();
  take(slot - index);
  return values;
}

KernelContext::Built lower_copy(const HardwareInfo& machine, DType dtype, int from, int to, const Dim& elements) {
  const auto& gpu = std::get<GpuInfo>(machine);
  KernelContext context("copy", KernelRole::copy);
  context.declare(from, dtype, true, false);
  context.declare(to, dtype, false, true);
  kernel::Builder& b = context.builder;
  const int lanes = gpu.vectors.lanes(dtype);
  const Value n = context.dim(elements);
  for_threads(b, n, lanes, [&](Value at) {
    unmasked_or_masked(b, at, n, lanes, elements, [&](Value mask) {
      b.store(context.buffer(to), at, b.load(context.buffer(from), at, lanes, mask), mask);
    });
  });
  return context.finish();
}

}  // namespace lathe::gpu
