#include "passes/cpu/reduction/partial_columns.h"

#include <algorithm>

#include "passes/lowering/block_sums.h"

namespace lathe::cpu {

using kernel::Value;

PartialColumns::PartialColumns(const CpuContext& lowering, ElementwiseProgram& program, std::vector<int> outer,
                               std::vector<int> inner)
    : lowering_(lowering), program_(program), outer_(std::move(outer)), inner_(std::move(inner)) {
  const auto is_sum = [&](const ElementwiseStore& store) {
    return program[store.value].kind == ElementwiseInstruction::Kind::column;
  };
  for (const ElementwiseStore& store : program.stores) {
    if (!is_sum(store)) continue;
    const Dim elements = Dim(most_chunks()) * program.points(inner_);
    const ElementwiseInstruction& reduce = program[store.value];
    const DType compute = compute_type(reduce.dtype);
    Sum sum{store, lowering.workspace(compute, elements, "partial sums")};
    auto rows = program.points(outer_).value();
    if (rows) *rows = std::max((*rows + most_chunks() - 1) / most_chunks(), least_rows);
    if (adds_in_blocks(reduce.op, compute, rows))
      sum.total = lowering.workspace(total_type(reduce.op, compute), elements, "totals");
    sums_.push_back(sum);
  }
  std::erase_if(program.stores, is_sum);
}

void PartialColumns::declare(KernelContext& context) const {
  for (const Sum& sum : sums_) {
    const ElementwiseInstruction& reduce = instruction(sum);
    const DType compute = compute_type(reduce.dtype);
    context.declare(sum.partial, compute, true, true);
    if (sum.total >= 0) context.declare(sum.total, total_type(reduce.op, compute), true, true);
  }
}

PartialColumns::Chunks PartialColumns::chunks(KernelContext& context) const {
  kernel::Builder& b = context.builder;
  const Value rows = context.dim(program_.points(outer_));
  const Value each = kernel::max(b.ceil_div(rows, most_chunks()), least_rows);
  return {rows, each, b.ceil_div(rows, each)};
}

void PartialColumns::run_rows(KernelContext& context, int lanes, int at_once, const Rows& rows) {
  kernel::Builder& b = context.builder;
  const Chunks all = chunks(context);
  const Value columns = context.dim(program_.points(inner_));
  b.parallel_for(0, all.count, 1, [&](Value chunk) {
    start_ = chunk * columns;
    for (const Sum& sum : sums_) {
      const Value identity = b.broadcast(reduction_identity(b, instruction(sum)), lanes);
      vector_loop(b, b.index(0), columns, lanes, [&](Value at, Value mask) {
        b.store(context.buffer(sum.partial), start_ + at, identity, mask);
        if (sum.total < 0) return;
        const kernel::Buffer total = context.buffer(sum.total);
        b.store(total, start_ + at, b.cast(identity, total.dtype), mask);
      });
    }
    const Value first = chunk * all.each, last = kernel::min(first + all.each, all.rows);
    const auto run = [&](Value from, Value to) {
      const Value rest = at_once > 1 ? to - (to - from) % at_once : from;
      if (at_once > 1) b.for_loop(from, rest, at_once, [&](Value row) { rows(row, at_once); });
      b.for_loop(rest, to, 1, [&](Value row) { rows(row, 1); });
    };
    if (!std::ranges::any_of(sums_, [](const Sum& sum) { return sum.total >= 0; })) return run(first, last);
    for_ranges(b, first, last, block_terms, [&](Value from, Value to) {
      run(from, to);
      end_block(context, columns, lanes);
    });
  });
}

void PartialColumns::end_block(KernelContext& context, Value columns, int lanes) const {
  kernel::Builder& b = context.builder;
  for (const Sum& sum : sums_) {
    if (sum.total < 0) continue;
    const kernel::Buffer partial = context.buffer(sum.partial), total = context.buffer(sum.total);
    vector_loop(b, b.index(0), columns, lanes, [&](Value at, Value mask) {
      const Value before = b.load(total, start_ + at, lanes, mask), block = b.load(partial, start_ + at, lanes, mask);
      b.store(total, start_ + at, b.apply(instruction(sum).op, {before, b.cast(block, total.dtype)}), mask);
      b.store(partial, start_ + at, b.broadcast(reduction_identity(b, instruction(sum)), lanes), mask);
    });
  }
}

void PartialColumns::add(KernelContext& context, int instruction, std::span<const Value> values, Value column,
                         Value mask) {
  kernel::Builder& b = context.builder;
  const auto sum =
      std::find_if(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.store.value == instruction; });
  LATHE_ASSERT(sum != sums_.end());
  const kernel::Buffer partial = context.buffer(sum->partial);
  Value result = b.load(partial, start_ + column, values[0].type.lanes, mask);
  for (const Value value : values) result = b.apply(program_[instruction].op, {result, value});
  b.store(partial, start_ + column, result, mask);
}

KernelContext::Built PartialColumns::finish(int lanes) const {
  KernelContext context("sums", KernelRole::combine_columns);
  kernel::Builder& b = context.builder;
  const auto parts_of = [&](const Sum& sum) { return sum.total >= 0 ? sum.total : sum.partial; };
  for (const Sum& sum : sums_) {
    const ElementwiseInstruction& reduce = instruction(sum);
    const DType compute = compute_type(reduce.dtype);
    context.declare(parts_of(sum), sum.total >= 0 ? total_type(reduce.op, compute) : compute, true, false);
  }
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
      BlockTotal total(b, reduce.op, b.broadcast(reduction_identity(b, reduce), lanes));
      b.for_loop(0, count, 1, [&](Value chunk) {
        total.add(b.load(context.buffer(parts_of(sum)), chunk * columns + at, lanes, mask));
      });
      ElementwiseEmitter::Scope scope(emitter, {{inner_, at, lanes}}, mask);
      const Value value = rounded(b, total.get(), reduce.dtype);
      emitter.store(sum.store.node, reduce.dtype, sum.store.form, value, scope);
    }
  });
  auto built = context.finish();
  built.launch.work = Dim(most_chunks() * lanes * static_cast<std::int64_t>(sums_.size()));
  return built;
}

}  // namespace lathe::cpu
