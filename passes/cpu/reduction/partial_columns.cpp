#include "passes/cpu/reduction/partial_columns.h"

#include <algorithm>

namespace lathe::cpu {

using kernel::Value;

PartialColumns::PartialColumns(const LoweringContext& lowering, ElementwiseProgram& program, std::vector<int> outer,
                               std::vector<int> inner)
    : lowering_(lowering), program_(program), outer_(std::move(outer)), inner_(std::move(inner)) {
  const auto is_sum = [&](const ElementwiseStore& store) {
    return program[store.value].kind == ElementwiseInstruction::Kind::column;
  };
  for (const ElementwiseStore& store : program.stores) {
    if (!is_sum(store)) continue;
    const Dim elements = Dim(most_chunks()) * program.points(inner_);
    const int partial = lowering.workspace(compute_type(program[store.value].dtype), elements, "partial sums");
    sums_.push_back({store, partial});
  }
  std::erase_if(program.stores, is_sum);
}

void PartialColumns::declare(KernelContext& context) const {
  for (const Sum& sum : sums_) context.declare(sum.partial, compute_type(instruction(sum).dtype), true, true);
}

PartialColumns::Chunks PartialColumns::chunks(KernelContext& context) const {
  kernel::Builder& b = context.builder;
  const Value rows = context.dim(program_.points(outer_));
  const Value each = kernel::max(b.ceil_div(rows, most_chunks()), least_rows);
  return {rows, each, b.ceil_div(rows, each)};
}

void PartialColumns::run_rows(KernelContext& context, int lanes, const std::function<void(Value)>& row) {
  kernel::Builder& b = context.builder;
  const Chunks all = chunks(context);
  const Value columns = context.dim(program_.points(inner_));
  b.parallel_for(0, all.count, 1, [&](Value chunk) {
    start_ = chunk * columns;
    for (const Sum& sum : sums_) {
      const Value identity = b.broadcast(reduction_identity(b, instruction(sum)), lanes);
      vector_loop(b, b.index(0), columns, lanes,
                  [&](Value at, Value mask) { b.store(context.buffer(sum.partial), start_ + at, identity, mask); });
    }
    const Value first = chunk * all.each;
    b.for_loop(first, kernel::min(first + all.each, all.rows), 1, row);
  });
}

void PartialColumns::add(KernelContext& context, int instruction, Value value, Value column, Value mask) {
  kernel::Builder& b = context.builder;
  const auto sum =
      std::find_if(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.store.value == instruction; });
  LATHE_ASSERT(sum != sums_.end());
  const kernel::Buffer partial = context.buffer(sum->partial);
  const Value before = b.load(partial, start_ + column, value.type.lanes, mask);
  b.store(partial, start_ + column, b.apply(program_[instruction].op, {before, value}), mask);
}

KernelContext::Built PartialColumns::finish(int lanes) const {
  KernelContext context("sums", KernelRole::combine_columns);
  kernel::Builder& b = context.builder;
  for (const Sum& sum : sums_) context.declare(sum.partial, compute_type(instruction(sum).dtype), true, false);
  for (const Sum& sum : sums_) {
    const DType dtype = instruction(sum).dtype;
    context.declare(lowering_.buffer_of(sum.store.node), dtype, false, true);
  }
  ElementwiseEmitter emitter(context, program_, lowering_.buffer_of);
  const Value columns = context.dim(program_.points(inner_));
  const Value count = chunks(context).count;
  b.parallel_for(0, b.ceil_div(columns, lanes), 1, [&](Value block) {
    const Value at = block * lanes;
    const Value mask = lanes > 1 ? b.tail_mask(columns - at, lanes) : Value{};
    for (const Sum& sum : sums_) {
      const ElementwiseInstruction& reduce = instruction(sum);
      const kernel::Var total = b.var(b.broadcast(reduction_identity(b, reduce), lanes));
      b.for_loop(0, count, 1, [&](Value chunk) {
        const Value part = b.load(context.buffer(sum.partial), chunk * columns + at, lanes, mask);
        b.set(total, b.apply(reduce.op, {b.get(total), part}));
      });
      ElementwiseEmitter::Scope scope(emitter, {{inner_, at, lanes}}, mask);
      const Value value = rounded(b, b.get(total), reduce.dtype);
      emitter.store(sum.store.node, reduce.dtype, sum.store.form, value, scope);
    }
  });
  auto built = context.finish();
  built.launch.work = Dim(most_chunks() * lanes * static_cast<std::int64_t>(sums_.size()));
  return built;
}

}  // namespace lathe::cpu
