#include "passes/cpu/attention/decode/decode_loops.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;
using Kind = ElementwiseInstruction::Kind;

void DecodeLoops::run(Value outer, Value row, const Columns& columns, Scope& row_scope, const Reduced& reduced) {
  for (const RowBlockPlan::Loop& l : plan_.loops())
    if (!l.reductions.empty() || !l.stores.empty() || !l.writes.empty())
      loop(l, outer, row, columns, row_scope, reduced);
}

void DecodeLoops::store_row(Scope& row_scope) {
  const ElementwiseProgram& program = emitter_.program();
  for (const ElementwiseStore* store : plan_.row_stores())
    emitter_.store(store->node, program[store->value].dtype, store->form, emitter_.emit(store->value, row_scope),
                   row_scope);
}

void DecodeLoops::loop(const RowBlockPlan::Loop& l, Value outer, Value row, const Columns& columns, Scope& row_scope,
                       const Reduced& reduced) {
  kernel::Builder& b = emitter_.context().builder;
  const ElementwiseProgram& program = emitter_.program();
  for (const int i : l.fixed) emitter_.emit(i, row_scope);
  std::vector<kernel::Var> accumulators;
  for (const int i : l.reductions)
    accumulators.push_back(b.var({compute_type(program[i].dtype), shape_.lanes}, reduction_identity(b, program[i])));
  vector_loop(b, columns.lo, columns.hi, shape_.lanes, [&](Value column, Value mask) {
    Scope scope(emitter_,
                {{shape_.outer, outer, 1}, {{shape_.row_dim}, row, 1}, {{shape_.columns_dim}, column, shape_.lanes}},
                mask, &row_scope);
    point(l, scope, row, column - columns.lo, accumulators);
  });
  for (std::size_t r = 0; r < l.reductions.size(); ++r) {
    const ElementwiseInstruction& reduce = program[l.reductions[r]];
    const Value found = b.reduce(reduce.op, b.get(accumulators[r]));
    row_scope.bind(l.reductions[r], reduced(l.reductions[r], rounded(b, found, reduce.dtype)));
  }
}

/// Processes a vector of columns. All reads precede the writes, which may use the same slots.
void DecodeLoops::point(const RowBlockPlan::Loop& l, Scope& scope, Value row, Value at,
                        const std::vector<kernel::Var>& accumulators) {
  kernel::Builder& b = emitter_.context().builder;
  const ElementwiseProgram& program = emitter_.program();
  const int lanes = shape_.lanes;
  const auto block = [&](const ScratchMatrix& slot) { return row * slot.stride + at; };
  for (const int i : l.reads) {
    const ScratchMatrix& from = slot(i);
    const Value value = b.cast(b.load(from.buffer, block(from), lanes), compute_type(from.buffer.dtype));
    scope.bind(i, program[i].kind == Kind::accumulator ? rounded(b, value, program[i].dtype) : value);
  }
  for (std::size_t r = 0; r < accumulators.size(); ++r) {
    const ElementwiseInstruction& reduce = program[l.reductions[r]];
    Value value = b.broadcast(emitter_.emit(reduce.args[0], scope), lanes);
    if (scope.mask) value = b.select(scope.mask, value, b.broadcast(reduction_identity(b, reduce), lanes));
    // min and max check their first operand for NaN. With the new value there, the check does not lengthen the
    // dependency chain.
    b.set(accumulators[r], b.apply(reduce.op, {value, b.get(accumulators[r])}));
  }
  for (const ElementwiseStore* store : l.stores) emitter_.emit(store->value, scope);
  std::vector<Value> made;
  for (const auto& [value, s] : l.writes) made.push_back(b.broadcast(emitter_.emit(value, scope), lanes));
  for (const ElementwiseStore* store : l.stores)
    emitter_.store(store->node, program[store->value].dtype, store->form, emitter_.emit(store->value, scope), scope);
  for (std::size_t w = 0; w < made.size(); ++w) {
    const ScratchMatrix& to = slots_[l.writes[w].second];
    b.store(to.buffer, block(to), b.cast(made[w], to.buffer.dtype));
  }
}

}  // namespace lathe::cpu
