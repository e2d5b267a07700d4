#include "ir/ops/rules/operand_rules.h"
#include "passes/cpu/cpu_kernels.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

KernelContext::Built scatter_positions(const CpuContext& lowering, ir::ValueId scatter, int to) {
  const ir::Node& node = lowering.graph[scatter];
  const int dim = ir::rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
  std::vector<int> index;
  for (int i = 0; i < lowering.graph[node.operands[0]].type.rank(); ++i) index.push_back(dim + i);
  const Shape& updates = lowering.graph[node.operands[1]].type.shape;
  const OperandProgram indices = operand_program(lowering.graph, lowering.plan, node.operands[0], index, updates);
  const Dim size = node.type.shape[dim].unnamed();
  // If the outer dims are empty, no index is read, so none is wrong.
  Dim outer(1);
  for (int d = 0; d < dim; ++d) outer = outer * updates[d].unnamed();
  const Dim count = outer.is(0) ? Dim(0) : indices.program.points(index);

  KernelContext context("sort_positions", KernelRole::scatter_sort);
  kernel::Builder& b = context.builder;
  declare_buffers(context, {&indices.program}, lowering);
  context.declare(to, i64, true, true);
  const std::int64_t code = context.check_code("an index is not in [0, " + size.to_string() + ")");
  const kernel::Buffer positions = context.buffer(to);
  ElementwiseEmitter emitter(context, indices.program, lowering.buffer_of);
  const Value rows = context.dim(size), order = context.dim(start_of_positions(node));
  const Value lookups =
      outer.value() ? context.dim(count) : b.select(b.index(0) < context.dim(outer), context.dim(count), b.index(0));
  const auto each_position = [&](const std::function<void(Value, Value)>& body) {
    b.for_loop(0, lookups, 1, [&](Value t) {
      Scope scope(emitter, {{index, t, 1}});
      const Value row = b.cast(emitter.emit(indices.result, scope), i64);
      const Value inside = b.index(0) <= row && row < rows;
      b.check(inside, code);
      b.if_(inside, [&] { body(t, row); });
    });
  };
  // A counting sort. Counts are stored two positions late, so that after the prefix sums each row's start is one
  // position late. While positions are stored, it advances to the row's end, which is the start of the next row.
  b.parallel_for(0, 1, 1, [&](Value) {
    const int lanes = lowering.vectors().lanes(i64);
    vector_loop(b, b.index(0), order, lanes,
                [&](Value at, Value mask) { b.store(positions, at, b.constant_int(i64, 0, lanes), mask); });
    each_position([&](Value, Value row) { b.store(positions, row + 2, b.load(positions, row + 2) + 1); });
    const kernel::Var before = b.var(b.index(0));
    b.for_loop(2, order, 1, [&](Value at) {
      b.set(before, b.get(before) + b.load(positions, at));
      b.store(positions, at, b.get(before));
    });
    each_position([&](Value t, Value row) {
      const Value at = b.load(positions, row + 1);
      b.store(positions, order + at, t);
      b.store(positions, row + 1, at + 1);
    });
  });
  auto built = context.finish();
  built.launch.work = size + count;
  return built;
}

}  // namespace lathe::cpu
