#include <algorithm>

#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/gemm/gemm.h"
#include "passes/lowering/operands/segments.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits the matmuls of a node's segments. They share one kernel; the number of the segment is a run-time argument.
class GroupedKernels {
 public:
  GroupedKernels(const CpuContext& lowering, ir::ValueId id)
      : lowering_(lowering), node_(lowering.graph[id]), out_(lowering.buffer_of(id)), id_(id) {}

  std::vector<KernelContext::Built> run() {
    std::vector<KernelContext::Built> built;
    for (const int number : segment_numbers(node_)) {
      const Segment segment(lowering_, id_, number);
      if (number == 0 && segment.keeps_rows()) built.push_back(clear(segment));
      built.push_back(product(segment));
    }
    return built;
  }

 private:
  /// Zeros the rows that belong to no segment.
  KernelContext::Built clear(const Segment& segment) const {
    KernelContext context("clear_rows", KernelRole::clear);
    kernel::Builder& b = context.builder;
    declare_buffers(context, {&segment.offsets().program}, lowering_);
    context.declare(out_, node_.type.dtype, false, true);
    context.touches({{out_, Dim(0)}});
    ElementwiseEmitter offsets(context, segment.offsets().program, lowering_.buffer_of);
    const Value rows = context.dim(segment.rows()), columns = context.dim(segment.operands().n);
    const int lanes = lowering_.vectors().lanes(node_.type.dtype);
    b.parallel_for(0, rows, 1, [&](Value row) {
      const auto offset = [&](int at) {
        return segment_offset(offsets, segment.offsets().result, b.index(at), rows);
      };
      const Value covered = offset(0) <= row && row < offset(static_cast<int>(node_.operands.size()) - 2);
      b.if_(kernel::logical_not(covered), [&] {
        const Value zeros = b.cast(b.constant(compute_type(node_.type.dtype), 0, lanes), node_.type.dtype);
        vector_loop(b, b.index(0), columns, lanes, [&](Value column, Value mask) {
          b.store(context.buffer(out_), row * columns + column, zeros, mask);
        });
      });
    });
    return context.finish();
  }

  /// Returns a plan of the blocked strategy, which packs nothing beforehand.
  GemmPlan plan(const Segment& segment) const {
    const ProductOperands& o = segment.operands();
    GemmQuery query{.compute = o.compute,
                    .cpu = lowering_.cpu,
                    .tuned = lowering_.tuned.products,
                    .batch = {},
                    .m = segment.keeps_rows() ? std::nullopt : o.m.value(),
                    .n = o.n.value(),
                    .k = segment.keeps_rows() ? o.k.value() : std::nullopt,
                    .lhs_axis = o.left.axis,
                    .rhs_axis = o.right.axis,
                    .lhs_loadable = o.left.plain,
                    .rhs_loadable = o.right.plain,
                    .pairs = lowering_.cpu.dot_pairs && o.dtype == bf16,
                    .epilogue_small = true};
    GemmPlan plan = plan_gemm(query);
    if (plan.strategy != GemmStrategy::blocked) {
      query.m = std::nullopt;  // few rows would select another strategy
      plan = plan_gemm(query);
    }
    plan.remainder = 0, plan.splits = 1, plan.prefetch_right = false;
    LATHE_ASSERT(plan.strategy == GemmStrategy::blocked && plan.panel == 0);
    return plan;
  }

  KernelContext::Built product(const Segment& segment) const {
    const GemmPlan plan = this->plan(segment);
    const ProductOperands& o = segment.operands();
    SegmentProduct product(lowering_, id_, segment);
    KernelContext& context = product.context;
    kernel::Builder& b = context.builder;
    context.multiplies_by(plan.tile.pairs() ? Multiplier::dot_pairs : Multiplier::fma, plan.missed);
    const Value columns = context.dim(o.n), zero = b.index(0);
    const bool keeps = segment.keeps_rows();
    Value first;
    GemmSizes sizes{b.index(1), context.dim(o.m), columns, context.dim(o.k)};
    sizes.actual = [&, m = sizes.m, k = sizes.k]() -> GemmSizes::Actual {
      const SegmentProduct::Rows here = product.find_rows();
      first = here.first;
      const Value count = here.last - here.first;
      return keeps ? GemmSizes::Actual{count, k} : GemmSizes::Actual{m, count};
    };
    const auto loader = [&](ElementwiseEmitter& emitter, const ProductOperand& operand, const Scope& top,
                            bool is_left) -> LoadOperand {
      return [&, is_left](Value, Value row, Value k, LaneAxis axis, int lanes, Value mask) {
        const Value at_row = keeps && is_left ? first + row : row, at_k = keeps ? k : first + k;
        return operand.load(emitter, top, zero, at_row, at_k, axis, lanes, mask);
      };
    };
    GemmOperand lhs{.axis = o.left.axis, .load = loader(product.left, o.left, product.left_top, true)};
    if (o.left.plain)
      lhs.prefetch = [&, lanes = plan.tile.lanes](Value, Value row, Value k) {
        const Value at_row = keeps ? first + row : row, at_k = keeps ? k : first + k;
        o.left.prefetch(product.left, product.left_top, zero, at_row, at_k, lanes);
      };
    const GemmOperand rhs{.axis = o.right.axis, .load = loader(product.right, o.right, product.right_top, false)};
    const auto result = [&](Value m) { return (keeps ? first + m : m) * columns; };
    const Epilogue epilogue = [&](Value, Value m) -> RowEpilogue {
      return [&, row = result(m)](Value n, int, Value sums, Value mask) { product.store(row + n, sums, mask); };
    };
    emit_gemm(b, plan, sizes, lhs, rhs, epilogue,
              [&](Value, Value m, Value n) { b.prefetch(context.buffer(out_), result(m) + n); });
    auto built = product.finish();
    built.launch.work = Dim(std::max(plan.tile.mc / 8, 2)) * o.k * Dim(plan.tile.nc);
    return built;
  }

  const CpuContext& lowering_;
  const ir::Node& node_;
  int out_;
  ir::ValueId id_;
};

}  // namespace

std::vector<KernelContext::Built> lower_grouped(const CpuContext& context, const Region& region) {
  std::vector<KernelContext::Built> built;
  for (const ir::ValueId member : region.members)
    for (KernelContext::Built& one : GroupedKernels(context, member).run()) built.push_back(std::move(one));
  for (KernelContext::Built& one : built) one.launch.part_of = region.members[0].index;
  return built;
}

}  // namespace lathe::cpu
