#include <algorithm>
#include <list>
#include <optional>

#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/reduction/partial_columns.h"
#include "passes/cpu/rows/row_folds.h"
#include "passes/cpu/rows/row_pick.h"
#include "passes/cpu/rows/row_prefetch.h"
#include "passes/lowering/block_sums.h"
#include "passes/lowering/elementwise/row_space.h"
#include "passes/lowering/elementwise/saved_values.h"

namespace lathe::cpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;

namespace {

KernelRole role_of(const ir::Graph& graph, const Region& region) {
  const bool reduces = std::any_of(region.members.begin(), region.members.end(),
                                   [&](ir::ValueId id) { return graph[id].op->as<ir::Reduce>() != nullptr; });
  return reduces ? KernelRole::row_reduction : KernelRole::elementwise;
}

/// Emits the body of one rows region.
class RowKernel {
 public:
  RowKernel(const CpuContext& lowering, const Region& region)
      : lowering_(lowering),
        context_("rows", role_of(lowering.graph, region)),
        program_(region_program(lowering.graph, lowering.plan, region)),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder),
        space_(program_, region.rows().inner, lowering.vectors()) {
    columns_.emplace(lowering, program_, space_.outer, space_.inner);
    declare_buffers(context_, {&program_}, lowering);
    columns_->declare(context_);
    loops_.emplace(lowering, program_, space_.inner_bits);
    saved_.emplace(lowering, program_, emitter_, *loops_);
    make_spill_rows();
    prefetch_.emplace(context_, lowering, program_, emitter_, space_, *loops_,
                      [this](const RowLoop& l) { return !results_of(l).empty(); });
    reduces_ = std::any_of(program_.code.begin(), program_.code.end(),
                           [](const ElementwiseInstruction& i) { return i.kind == Kind::reduce; });
  }

  std::vector<KernelContext::Built> run() {
    Scope top(emitter_, {});
    emitter_.hoist(top);
    const bool sums = columns_->any(), is_flat = !reduces_ && !sums && space_.outer.empty();
    if (is_flat) {
      flat(top);
    } else if (sums) {
      const bool only = only_sums_columns();
      columns_->run_rows(context_, space_.lanes, only ? lowering_.tuned.loops.summed_rows : 1,
                         [&](Value first, int count) { only ? add_rows(first, count, top) : one_row(first, top); });
    } else {
      b_.parallel_for(0, context_.dim(program_.points(space_.outer)), 1, [&](Value row) { one_row(row, top); });
    }
    std::vector<KernelContext::Built> built;
    built.push_back(context_.finish());
    const Dim width = is_flat ? Dim(flat_chunk()) : program_.points(space_.inner);
    built[0].launch.work = width * Dim(program_.work() * (sums ? PartialColumns::least_rows : 1));
    if (sums) built.push_back(columns_->finish(space_.lanes));
    return built;
  }

 private:
  std::int64_t flat_chunk() const { return task_elements(lowering_.cpu); }

  void flat(Scope& top) {
    const Value n = context_.dim(program_.points(space_.inner));
    b_.parallel_for(0, n, flat_chunk(), [&](Value lo) {
      const Value hi = kernel::min(lo + flat_chunk(), n);
      vector_loop(b_, lo, hi, space_.lanes, [&](Value at, Value mask) {
        prefetch_->further({}, at, lowering_.tuned.loops.ahead_flat);
        Scope scope(emitter_, {{space_.inner, at, space_.lanes}}, mask, &top);
        for (const ElementwiseStore& store : program_.stores) emitter_.emit(store.value, scope);
        for (const ElementwiseStore& store : program_.stores) put(store, scope);
      });
    });
  }

  /// All values of a point are computed before the first is stored, because a store may overwrite the input of
  /// another one.
  void put(const ElementwiseStore& store, Scope& scope) {
    const DType dtype = program_[store.value].dtype;
    const Value value = emitter_.emit(store.value, scope);
    if (streams(store)) return emitter_.stream(store.node, dtype, store.form, value, scope);
    emitter_.store(store.node, dtype, store.form, value, scope);
  }

  void one_row(Value row, Scope& top) {
    Scope scope(emitter_, {{space_.outer, row, 1}}, {}, &top);
    for (const RowLoop& l : loops_->loops()) loop(l, row, scope);
    const auto rowwise = [&](const ElementwiseStore& store) { return !loops_->varies(store); };
    for (const ElementwiseStore& store : program_.stores)
      if (rowwise(store)) {
        saved_->hoist(store.value, scope);
        emitter_.emit(store.value, scope);
      }
    for (const ElementwiseStore& store : program_.stores)
      if (rowwise(store)) put(store, scope);
  }

  /// Returns whether all results are sums over the rows.
  bool only_sums_columns() const {
    const RowLoop& l = loops_->loops().front();
    return loops_->loops().size() == 1 && l.reductions.empty() && l.spilled.empty() && program_.stores.empty();
  }

  /// Adds the rows [first, first + count), in their order. Loads and stores each partial result once for all of them.
  void add_rows(Value first, int count, Scope& top) {
    const RowLoop& l = loops_->loops().front();
    std::list<Scope> rows;
    std::list<RowPrefetch::OfRow> prefetches;
    for (int r = 0; r < count; ++r) {
      rows.emplace_back(emitter_, std::vector<IndexGroup>{{space_.outer, first + r, 1}}, Value{}, &top);
      for (const int i : results_of(l)) saved_->hoist(i, rows.back());
      prefetches.emplace_back(*prefetch_, l, first + r);
    }
    const Value n = context_.dim(program_.points(space_.inner));
    vector_loop(b_, b_.index(0), n, space_.lanes, [&](Value at, Value mask) {
      for (RowPrefetch::OfRow& prefetch : prefetches) prefetch.emit(at);
      std::list<Scope> points;
      for (int r = 0; Scope & row : rows) {
        const Value number = first + r++;
        points.emplace_back(emitter_,
                            std::vector<IndexGroup>{{space_.outer, number, 1}, {space_.inner, at, space_.lanes}},
                            mask, &row);
      }
      for (const int i : l.columns) {
        std::vector<Value> values;
        for (Scope& point : points)
          values.push_back(b_.broadcast(emitter_.emit(program_[i].args[0], point), space_.lanes));
        columns_->add(context_, i, values, at, mask);
      }
    });
  }

  std::optional<RowPick> pick(int reduction) const {
    return space_.inner.size() == 1 ? row_pick(program_, reduction, space_.inner[0]) : std::nullopt;
  }

  /// Returns the reductions that a loop accumulates element by element.
  std::vector<int> folds_of(const RowLoop& l) const {
    std::vector<int> folds;
    for (const int i : l.reductions)
      if (!pick(i)) folds.push_back(i);
    return folds;
  }

  /// Returns the values that a loop computes.
  std::vector<int> results_of(const RowLoop& l) const {
    std::vector<int> results = folds_of(l);
    for (int& i : results) i = program_[i].args[0];
    for (const int i : l.columns) results.push_back(program_[i].args[0]);
    for (const ElementwiseStore* store : l.stores) results.push_back(store->value);
    return results;
  }

  /// Binds the reductions of a loop that pick one element. The element is read from the row before the loop runs.
  void take_picks(const RowLoop& l, Value row, Scope& row_scope) {
    for (const int i : l.reductions) {
      const auto picked = pick(i);
      if (!picked) continue;
      saved_->hoist(picked->column, row_scope);
      saved_->hoist(picked->value, row_scope);
      const Value at = b_.cast(emitter_.emit(picked->column, row_scope), i64);
      const Value inside = b_.index(0) <= at && at < context_.dim(program_.points(space_.inner));
      Scope scope(emitter_, {{space_.outer, row, 1}, {space_.inner, at, 1}}, inside, &row_scope);
      saved_->bind({&picked->value, 1}, scope,
                   [&](int, const ElementwiseStore& spill) { return reload(spill, at, scope); });
      const Value nothing = reduction_identity(b_, program_[i]);
      const Value found = b_.select(inside, emitter_.emit(picked->value, scope), nothing);
      row_scope.bind(i, rounded(b_, b_.apply(program_[i].op, {found, nothing}), program_[i].dtype));
    }
  }

  /// Returns where a loop over a row starts its whole vectors. Streaming stores should write whole cache lines, but
  /// rows of arbitrary width do not start at one.
  Value first_cache_line(const RowLoop& l, Value row, Value n) {
    const bool sums = !l.reductions.empty() || !l.columns.empty();
    const auto width = program_.points(space_.inner).value();
    if (sums || l.stores.empty() || !width || *width % space_.lanes == 0 || !streams(*l.stores[0]))
      return b_.index(0);
    Scope scope(emitter_, {{space_.outer, row, 1}, {space_.inner, b_.index(0), space_.lanes}});
    const Value start = scope.indices.position(l.stores[0]->form).base;
    return kernel::min(n, (space_.lanes - start % space_.lanes) % space_.lanes);
  }

  void loop(const RowLoop& l, Value row, Scope& row_scope) {
    take_picks(l, row, row_scope);
    const std::vector<int> results = results_of(l);
    if (results.empty()) return;
    for (const int i : results) saved_->hoist(i, row_scope);
    RowFolds folds(b_, emitter_, program_, space_, folds_of(l), lowering_.tuned.loops.chains);
    const Value n = context_.dim(program_.points(space_.inner));
    folds.add_totals();
    RowPrefetch::OfRow prefetch(*prefetch_, l, row);
    run_loop(l, row, n, folds, [&](Value at, Value mask, int chain) {
      Scope scope(emitter_, {{space_.outer, row, 1}, {space_.inner, at, space_.lanes}}, mask, &row_scope);
      prefetch.emit(at);
      // All reads of saved values precede the stores, which may overwrite them.
      saved_->bind(results, scope, [&](int, const ElementwiseStore& spill) { return reload(spill, at, scope); });
      folds.accumulate(chain, scope);
      compute_point(l, at, scope);
    });
    folds.finish(row_scope);
    for (const ElementwiseStore* store : l.stores) saved_->keep(store->value, store);
    for (const auto& [value, spill] : l.spilled) saved_->keep(value, spill);
  }

  /// Emits what a loop computes at `at`, apart from the reductions along the row.
  void compute_point(const RowLoop& l, Value at, Scope& scope) {
    for (const ElementwiseStore* store : l.stores) emitter_.emit(store->value, scope);
    for (const int i : l.columns) {
      const Value value = b_.broadcast(emitter_.emit(program_[i].args[0], scope), space_.lanes);
      columns_->add(context_, i, {&value, 1}, at, scope.mask);
    }
    for (const auto& [value, spill] : l.spilled) emitter_.emit(value, scope);
    for (const ElementwiseStore* store : l.stores) put(*store, scope);
    for (const RowLoop::Spilled& spilled : l.spilled) spill(spilled, at, scope);
  }

  /// Emits body(at, mask, chain) for the `n` elements of a row: for all chains in turn, then for the remainder.
  void run_loop(const RowLoop& l, Value row, Value n, RowFolds& folds,
                const std::function<void(Value at, Value mask, int chain)>& body) {
    const int chains = folds.chains();
    const bool in_chains = chains > 1 || folds.in_blocks();
    const Value unrolled = in_chains ? n - n % (chains * space_.lanes) : first_cache_line(l, row, n);
    const auto all_chains = [&](Value at) {
      for (int c = 0; c < chains; ++c) body(at + c * space_.lanes, {}, c);
    };
    if (folds.in_blocks())
      for_blocks(b_, 0, unrolled, chains * space_.lanes, all_chains, [&] { folds.end_block(); });
    else if (in_chains)
      b_.for_loop(0, unrolled, chains * space_.lanes, all_chains);
    else if (b_.constant_value(unrolled) != 0)
      vector_loop(b_, b_.index(0), unrolled, space_.lanes, [&](Value at, Value mask) { body(at, mask, 0); });
    vector_loop(b_, unrolled, n, space_.lanes, [&](Value at, Value mask) { body(at, mask, 0); });
  }

  /// Reads back a value that an earlier loop stored or spilled.
  Value reload(const ElementwiseStore& spill, Value column, Scope& scope) {
    const auto row = spilled_rows_.find(&spill);
    if (row == spilled_rows_.end()) return emitter_.reload(spill.node, spill.form, scope);
    return b_.load(context_.buffer(row->second), column, scope.indices.lanes(), scope.mask);
  }

  void spill(const RowLoop::Spilled& spilled, Value column, Scope& scope) {
    const auto& [i, spill] = spilled;
    const Value value = emitter_.emit(i, scope);
    if (const auto row = spilled_rows_.find(spill); row != spilled_rows_.end())
      return b_.store(context_.buffer(row->second), column, b_.broadcast(value, space_.lanes), scope.mask);
    emitter_.store(spill->node, program_[i].dtype, spill->form, value, scope);
  }

  /// Whether a result bypasses the caches: if no other loop over the row follows.
  bool streams(const ElementwiseStore& store) const {
    const bool last = loops_->level(store.value) + 1 == static_cast<int>(loops_->loops().size());
    return last && goes_past_caches(lowering_, program_, store);
  }

  /// Allocates a row of per-thread scratch for each value that would be spilled to a streamed result.
  void make_spill_rows() {
    for (const RowLoop& loop : loops_->loops())
      for (const auto& [i, spill] : loop.spilled) {
        if (!streams(*spill)) continue;
        const DType dtype = compute_type(program_[i].dtype);
        spilled_rows_[spill] = lowering_.scratch(dtype, program_.points(space_.inner), "spilled row");
        context_.declare(spilled_rows_[spill], dtype, true, true);
      }
  }

  const CpuContext& lowering_;
  KernelContext context_;
  ElementwiseProgram program_;
  ElementwiseEmitter emitter_;
  kernel::Builder& b_;
  RowSpace space_;
  std::optional<PartialColumns> columns_;
  std::optional<RowLoops> loops_;
  std::optional<SavedValues> saved_;
  bool reduces_ = false;
  std::map<const ElementwiseStore*, int> spilled_rows_;  ///< by spill: the scratch buffer that replaces it
  std::optional<RowPrefetch> prefetch_;
};

}  // namespace

std::vector<KernelContext::Built> lower_rows(const CpuContext& context, const Region& region) {
  return RowKernel(context, region).run();
}

}  // namespace lathe::cpu
