#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/segments.h"

namespace lathe::gpu {

using kernel::Value;

namespace {

/// One result of the segment per thread, its products added in order.
KernelContext::Built segment_product(const GpuContext& lowering, ir::ValueId id, const Segment& segment) {
  const ProductOperands& o = segment.operands();
  SegmentProduct product(lowering, id, segment);
  KernelContext& context = product.context;
  kernel::Builder& b = context.builder;
  const Value m = context.dim(o.m), n = context.dim(o.n), k = context.dim(o.k), zero = b.index(0);
  const bool keeps = segment.keeps_rows();
  for_threads(b, m * n, 1, [&](Value i) {
    const Value row = i / n, column = i % n;
    const SegmentProduct::Rows here = product.find_rows();
    const auto result = [&](Value lo, Value hi, Value at) {
      const kernel::Var sum = b.var(b.constant(o.compute, 0));
      b.for_loop(lo, hi, 1, [&](Value t) {
        const Value x = o.left.load(product.left, product.left_top, zero, row, t, o.left.axis, 1, {});
        const Value y = o.right.load(product.right, product.right_top, zero, column, t, o.right.axis, 1, {});
        b.set(sum, b.fma(x, y, b.get(sum)));
      });
      product.store(at, b.get(sum));
    };
    if (!keeps) return result(here.first, here.last, i);
    b.if_(here.first <= row && row < here.last, [&] { result(zero, k, i); });
  });
  return product.finish();
}

/// Zeros the rows that belong to no segment.
KernelContext::Built clear_rows(const GpuContext& lowering, ir::ValueId id, const Segment& segment) {
  const ir::Node& node = lowering.graph[id];
  const int out = lowering.buffer_of(id);
  KernelContext context("clear_rows", KernelRole::clear);
  kernel::Builder& b = context.builder;
  declare_buffers(context, {&segment.offsets().program}, lowering);
  context.declare(out, node.type.dtype, false, true);
  context.touches({{out, Dim(0)}});
  ElementwiseEmitter offsets(context, segment.offsets().program, lowering.buffer_of);
  const Value rows = context.dim(segment.rows()), columns = context.dim(segment.operands().n);
  for_threads(b, rows * columns, 1, [&](Value i) {
    const auto offset = [&](int at) { return segment_offset(offsets, segment.offsets().result, b.index(at), rows); };
    const Value row = i / columns;
    const Value covered = offset(0) <= row && row < offset(static_cast<int>(node.operands.size()) - 2);
    b.if_(kernel::logical_not(covered), [&] {
      b.store(context.buffer(out), i, b.cast(b.constant(compute_type(node.type.dtype), 0), node.type.dtype));
    });
  });
  return context.finish();
}

}  // namespace

std::vector<KernelContext::Built> lower_grouped(const GpuContext& context, const Region& region) {
  std::vector<KernelContext::Built> built;
  for (const ir::ValueId id : region.members)
    for (const int number : segment_numbers(context.graph[id])) {
      const Segment segment(context, id, number);
      if (number == 0 && segment.keeps_rows()) built.push_back(clear_rows(context, id, segment));
      built.push_back(segment_product(context, id, segment));
    }
  return built;
}

}  // namespace lathe::gpu
