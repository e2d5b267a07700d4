#include "ir/ops/rules/operand_rules.h"
#include "passes/cpu/cpu_kernels.h"
#include "passes/lowering/operands/cache_append_operands.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// out[pre, positions[t], post] = rows[pre, t, post]. The rows of one task are written in sequence, so that of equal
/// positions the last one wins, on any number of threads.
class UpdateRowsKernels {
 public:
  UpdateRowsKernels(const CpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        operands_(lowering, id),
        out_(lowering.buffer_of(id)),
        lanes_(operands_.post.empty() ? 1 : program_lanes(operands_.rows.program, lowering.vectors())) {}

  std::vector<KernelContext::Built> run() {
    std::vector<KernelContext::Built> built;
    if (operands_.copies()) built.push_back(copy());
    built.push_back(update());
    return built;
  }

 private:
  /// Consecutive elements of a row.
  struct Elements {
    Value pre, t, column, mask;
  };
  /// Their destination: `first` for position 0, `stride` further for each next one; positions are below `size`.
  struct Target {
    Value first, stride, size;
    std::int64_t code;
  };

  Value row_elements(ElementwiseEmitter& values, Value pre, Value t, Value column, Value mask) const {
    std::vector<IndexGroup> groups = {{operands_.pre, pre, 1}, {{operands_.dim}, t, 1}};
    if (!operands_.post.empty()) groups.push_back({operands_.post, column, lanes_});
    Scope scope(values, std::move(groups), mask);
    return values.context().builder.broadcast(values.emit(operands_.rows.result, scope), lanes_);
  }

  /// Stores elements that have a position each.
  void scatter(ElementwiseEmitter& offsets, ElementwiseEmitter& values, const Elements& from,
               const Target& to) const {
    kernel::Builder& b = offsets.context().builder;
    const kernel::Buffer out = offsets.context().buffer(out_);
    std::vector<IndexGroup> groups = {{operands_.pre, from.pre, 1}, {{operands_.dim}, from.t, 1}};
    groups.push_back({operands_.post, from.column, lanes_});
    Scope position(offsets, std::move(groups), from.mask);
    const Value at = b.broadcast(b.cast(offsets.emit(operands_.positions.result, position), i64), lanes_);
    const Value inside = b.broadcast(b.index(0), lanes_) <= at && at < to.size;
    const Value expected = from.mask ? inside || kernel::logical_not(from.mask) : inside;
    b.check(lanes_ == 1 ? expected : b.reduce(ScalarOp::logical_and, expected), to.code);
    const Value value =
        b.cast(row_elements(values, from.pre, from.t, from.column, from.mask), operands_.node.type.dtype);
    if (lanes_ == 1) return b.if_(inside, [&] { b.store(out, to.first + at * to.stride, value, from.mask); });
    b.scatter(out, b.ramp(to.first, lanes_) + at * to.stride, value, from.mask ? inside && from.mask : inside);
  }

  KernelContext::Built copy() {
    KernelContext context("copy_rows", KernelRole::copy_rows);
    kernel::Builder& b = context.builder;
    const OperandProgram old = operands_.old();
    declare_buffers(context, {&old.program}, lowering_);
    context.declare(out_, operands_.node.type.dtype, false, true);
    ElementwiseEmitter emitter(context, old.program, lowering_.buffer_of);
    const int last = old.program.domain.rank() - 1, lanes = program_lanes(old.program, lowering_.vectors());
    std::vector<int> outer;
    for (int d = 0; d < last; ++d) outer.push_back(d);
    const Value columns = context.dim(old.program.points({last}));
    b.parallel_for(0, context.dim(old.program.points(outer)), 1, [&](Value i) {
      vector_loop(b, b.index(0), columns, lanes, [&](Value at, Value mask) {
        Scope scope(emitter, {{outer, i, 1}, {{last}, at, lanes}}, mask);
        const Value value = b.broadcast(emitter.emit(old.result, scope), lanes);
        b.store(context.buffer(out_), i * columns + at, b.cast(value, operands_.node.type.dtype), mask);
      });
    });
    auto built = context.finish();
    built.launch.work = old.program.points({last});
    return built;
  }

  KernelContext::Built update() {
    KernelContext context("update_rows", KernelRole::cache_append);
    kernel::Builder& b = context.builder;
    const ElementwiseProgram &rows = operands_.rows.program, &positions = operands_.positions.program;
    declare_buffers(context, {&rows, &positions}, lowering_);
    context.declare(out_, operands_.node.type.dtype, false, true);
    context.writes_part_of(out_);
    context.touches({{out_, rows.domain.numel().unnamed()}});
    const std::int64_t code = context.check_code("an index is not in [0, " + operands_.size.to_string() + ")");
    ElementwiseEmitter values(context, rows, lowering_.buffer_of), offsets(context, positions, lowering_.buffer_of);
    const Value columns = context.dim(rows.points(operands_.post)), size = context.dim(operands_.size);
    const auto width = rows.points(operands_.post).value();
    const std::int64_t task = lowering_.tuned.loops.update_task_vectors * lanes_;
    const std::int64_t blocks = width ? std::max<std::int64_t>((*width + task - 1) / task, 1) : 1;
    b.parallel_for(0, context.dim(rows.points(operands_.pre) * Dim(blocks)), 1, [&](Value i) {
      const Value pre = i / blocks, lo = i % blocks * task;
      const Value hi = blocks == 1 ? columns : kernel::min(lo + task, columns);
      b.for_loop(0, context.dim(operands_.count), 1, [&](Value t) {
        const Value first = blocks == 1 ? b.index(0) : lo;
        if (operands_.each)
          return vector_loop(b, first, hi, lanes_, [&](Value column, Value mask) {
            scatter(offsets, values, {pre, t, column, mask}, {pre * size * columns + column, columns, size, code});
          });
        Scope position(offsets, {{operands_.pre, pre, 1}, {{operands_.dim}, t, 1}});
        const Value at = b.cast(offsets.emit(operands_.positions.result, position), i64);
        const Value inside = b.index(0) <= at && at < size;
        b.check(inside, code);
        b.if_(inside, [&] {
          const Value start = (pre * size + at) * columns;
          vector_loop(b, first, hi, lanes_, [&](Value column, Value mask) {
            const Value value = b.cast(row_elements(values, pre, t, column, mask), operands_.node.type.dtype);
            b.store(context.buffer(out_), start + column, value, mask);
          });
        });
      });
    });
    auto built = context.finish();
    built.launch.work = operands_.count * Dim(width.value_or(task)) * Dim(rows.work());
    return built;
  }

  const CpuContext& lowering_;
  CacheAppendOperands operands_;
  int out_, lanes_;
};

}  // namespace

std::vector<KernelContext::Built> lower_update_rows(const CpuContext& context, const Region& region) {
  return UpdateRowsKernels(context, region.members[0]).run();
}

}  // namespace lathe::cpu
