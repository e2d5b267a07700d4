#include "passes/cpu/attention/blocks/row_block_loops.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;
using Kind = ElementwiseInstruction::Kind;

RowBlockLoops::Rows RowBlockLoops::run(const RowBlockPosition& row_block, Value row_count, int vectors,
                                       const Scope& top) {
  kernel::Builder& b = emitter_.context().builder;
  Rows rows;
  for (int v = 0; v < vectors; ++v) {
    const Value first = row_block.row + v * shape_.lanes;
    rows.push_back(std::make_unique<Scope>(
        emitter_,
        std::vector<IndexGroup>{{shape_.outer, row_block.outer, 1}, {{shape_.row_dim}, first, shape_.lanes}},
        b.tail_mask(row_count - first, shape_.lanes), &top));
  }
  for (const RowBlockPlan::Loop& l : plan_.loops())
    if (!l.reductions.empty() || !l.stores.empty() || !l.writes.empty()) loop(l, row_block, rows);
  return rows;
}

void RowBlockLoops::store_rows(Rows& rows) {
  const ElementwiseProgram& program = emitter_.program();
  for (const ElementwiseStore* store : plan_.row_stores())
    for (auto& scope : rows)
      emitter_.store(store->node, program[store->value].dtype, store->form, emitter_.emit(store->value, *scope),
                     *scope);
}

void RowBlockLoops::loop(const RowBlockPlan::Loop& l, const RowBlockPosition& row_block, Rows& rows) {
  kernel::Builder& b = emitter_.context().builder;
  const ElementwiseProgram& program = emitter_.program();
  std::vector<std::vector<kernel::Var>> accumulators;
  for (auto& scope : rows) {
    for (const int i : l.fixed) emitter_.emit(i, *scope);
    for (const ElementwiseStore* s : l.stores)
      if (program[s->value].kind == Kind::column) scope->bind(s->value, is_first(s->value, row_block));
    accumulators.emplace_back();
    for (const int i : l.reductions)
      accumulators.back().push_back(
          b.var({compute_type(program[i].dtype), shape_.lanes}, reduction_identity(b, program[i])));
  }
  for (const Block& part : blocks(row_block, static_cast<int>(rows.size())))
    block(l, row_block, part, rows, accumulators);
  for (std::size_t v = 0; v < rows.size(); ++v)
    for (std::size_t r = 0; r < l.reductions.size(); ++r)
      rows[v]->bind(l.reductions[r], rounded(b, b.get(accumulators[v][r]), program[l.reductions[r]].dtype));
}

/// With a diagonal, returns the columns before it, then the ranges that fewer and fewer vectors of rows need.
std::vector<RowBlockLoops::Block> RowBlockLoops::blocks(const RowBlockPosition& row_block, int vectors) const {
  if (row_block.row_ends.empty()) return {{row_block.lo, row_block.hi, 0, false}};
  std::vector<Block> found;
  Value lo = row_block.lo;
  if (!inside_.empty()) {
    found.push_back({lo, row_block.inside, 0, true});
    lo = row_block.inside;
  }
  for (int v = 0; v < vectors; ++v) {
    found.push_back({lo, row_block.end(v), v, false});
    lo = row_block.end(v);
  }
  return found;
}

void RowBlockLoops::block(const RowBlockPlan::Loop& l, const RowBlockPosition& row_block, const Block& part,
                          Rows& rows, const std::vector<std::vector<kernel::Var>>& accumulators) {
  kernel::Builder& b = emitter_.context().builder;
  b.for_loop(part.lo, part.hi, 1, [&](Value column) {
    for (int v = part.first; v < static_cast<int>(rows.size()); ++v) {
      Scope& row = *rows[v];
      Scope scope(emitter_,
                  {{shape_.outer, row_block.outer, 1},
                   {{shape_.row_dim}, row_block.row + v * shape_.lanes, shape_.lanes},
                   {{shape_.columns_dim}, column, 1}},
                  row.mask, &row);
      if (part.inside)
        for (const auto& [comparison, holds] : inside_) scope.bind(comparison, b.constant_int(boolean, holds));
      point(l, scope, column, v, accumulators[v]);
    }
  });
}

/// Stores a value, or adds it to the sum that earlier outer indices have stored.
void RowBlockLoops::store(const ElementwiseStore& store, Scope& scope) {
  kernel::Builder& b = emitter_.context().builder;
  const ElementwiseInstruction& made = emitter_.program()[store.value];
  if (made.kind != Kind::column) {
    emitter_.store(store.node, made.dtype, store.form, emitter_.emit(store.value, scope), scope);
    return;
  }
  const Value value = b.broadcast(emitter_.emit(made.args[0], scope), shape_.lanes);
  const Value before = emitter_.reload(store.node, store.form, scope);
  const Value first = b.broadcast(emitter_.emit(store.value, scope), shape_.lanes);
  emitter_.store(store.node, made.dtype, store.form, b.select(first, value, value + before), scope);
}

/// Returns whether all outer indices that a sum goes over are 0.
Value RowBlockLoops::is_first(int value, const RowBlockPosition& row_block) {
  const ElementwiseProgram& program = emitter_.program();
  Linear folded{std::vector<Dim>(static_cast<std::size_t>(program.domain.rank()), Dim(0)), 0};
  for (const int d : shape_.outer)
    if ((program.depends[value] >> d & 1) == 0) folded.coefficients[d] = 1;
  Scope scope(emitter_, {{shape_.outer, row_block.outer, 1}});
  return kernel::equal(scope.indices.value(folded), emitter_.context().builder.index(0));
}

/// Processes one column of one vector of rows. All reads precede the writes, which may use the same slots.
void RowBlockLoops::point(const RowBlockPlan::Loop& l, Scope& scope, Value column, int vector,
                          const std::vector<kernel::Var>& accumulators) {
  kernel::Builder& b = emitter_.context().builder;
  const ElementwiseProgram& program = emitter_.program();
  const int lanes = shape_.lanes;
  const auto position = [&](const ScratchMatrix& slot) { return column * slot.stride + vector * lanes; };
  const auto bytes = [&](const ScratchMatrix& slot) {
    return lanes * static_cast<int>(size_in_bytes(slot.buffer.dtype));
  };
  for (const int i : l.reads) {
    const ScratchMatrix& from = slot(i);
    const Value value =
        b.cast(b.load(from.buffer, position(from), lanes, {}, bytes(from)), compute_type(from.buffer.dtype));
    scope.bind(i, program[i].kind == Kind::accumulator ? rounded(b, value, program[i].dtype) : value);
  }
  for (std::size_t r = 0; r < accumulators.size(); ++r) {
    const ElementwiseInstruction& reduce = program[l.reductions[r]];
    const Value value = b.broadcast(emitter_.emit(reduce.args[0], scope), lanes);
    b.set(accumulators[r], b.apply(reduce.op, {b.get(accumulators[r]), value}));
  }
  for (const ElementwiseStore* s : l.stores) store(*s, scope);
  for (const auto& [value, s] : l.writes) {
    const ScratchMatrix& to = slots_[s];
    Value made = b.cast(b.broadcast(emitter_.emit(value, scope), lanes), to.buffer.dtype);
    // A pair of rows may extend past the last row, which must contribute nothing.
    if (to.buffer.dtype == bf16) made = b.select(scope.mask, made, b.constant(bf16, 0, lanes));
    b.store(to.buffer, position(to), made, {}, bytes(to));
  }
}

}  // namespace lathe::cpu
