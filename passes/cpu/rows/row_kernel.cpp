#include <algorithm>
#include <optional>

#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/reduction/partial_columns.h"
#include "passes/cpu/rows/row_pick.h"
#include "passes/lowering/block_sums.h"
#include "passes/lowering/elementwise/row_space.h"
#include "passes/lowering/elementwise/saved_values.h"

namespace lathe::cpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;
using IndexGroups = std::vector<IndexGroup>;

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
    choose_prefetch();
    reduces_ = std::any_of(program_.code.begin(), program_.code.end(),
                           [](const ElementwiseInstruction& i) { return i.kind == Kind::reduce; });
  }

  std::vector<KernelContext::Built> run() {
    Scope top(emitter_, {});
    emitter_.hoist(top);
    const bool sums = columns_->any(), is_flat = !reduces_ && !sums && space_.outer.empty();
    const auto row_of = [&](Value row) { one_row(row, top); };
    if (is_flat) {
      flat(top);
    } else if (sums) {
      columns_->run_rows(context_, space_.lanes, row_of);
    } else {
      b_.parallel_for(0, context_.dim(program_.points(space_.outer)), 1, row_of);
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
        prefetch_further({}, at, lowering_.tuned.loops.ahead_flat);
        Scope scope(emitter_, {{space_.inner, at, space_.lanes}}, mask, &top);
        for (const ElementwiseStore& store : program_.stores) emitter_.emit(store.value, scope);
        for (const ElementwiseStore& store : program_.stores) put(store, scope);
      });
    });
  }

  /// If the last-level cache is slow, prefetches the loop's reads `bytes` ahead, unless all of them may fit into L2.
  /// The hardware prefetcher follows a stream only up to the end of a page, and has few outstanding reads in a loop
  /// that computes much.
  void prefetch_further(const IndexGroups& row, Value at, std::int64_t bytes) {
    const auto elements = (program_.points(space_.outer) * program_.points(space_.inner)).value();
    const CpuInfo& cpu = lowering_.cpu;
    const std::int64_t many = 4 * cpu.l2.share() / size_in_bytes(f32);
    if (!cpu.slow_last_level || elements.value_or(many) < many) return;
    const auto varies = [&](int i, std::uint64_t dims) { return (program_.depends[i] & dims) != 0; };
    for (int i = 0; i < program_.size(); ++i) {
      const ElementwiseInstruction& in = program_[i];
      const bool load = in.kind == Kind::load && in.args.empty();
      if (!load || !varies(i, space_.inner_bits) || (!row.empty() && !varies(i, ~space_.inner_bits))) continue;
      IndexGroups groups = row;
      groups.push_back({space_.inner, at + bytes / static_cast<std::int64_t>(size_in_bytes(in.dtype)), space_.lanes});
      Scope further(emitter_, groups);
      emitter_.prefetch(i, further);
    }
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

  /// Chooses the load of a later row to prefetch, and the loop that does it. The first loop over a row waits for
  /// memory, while the others find the row in a cache. One of the others prefetches, so that memory is always busy.
  /// With a single loop, the hardware prefetcher is enough, except for gathered rows. Prefetching rows of several
  /// tensors is slower.
  void choose_prefetch() {
    const auto width = program_.points(space_.inner).value();
    if (!width || space_.outer.empty()) return;
    for (const RowLoop& l : loops_->loops())
      if (&l != &loops_->loops().front() && prefetch_loop_ == nullptr && !results_of(l).empty()) prefetch_loop_ = &l;
    const bool one_loop = prefetch_loop_ == nullptr;
    if (one_loop) prefetch_loop_ = &loops_->loops().front();
    std::vector<int> reads;
    for (int i = 0; i < program_.size(); ++i) {
      const ElementwiseInstruction& in = program_[i];
      const bool load = in.kind == Kind::load && in.args.empty() && !one_loop,
                 looked_up = in.kind == Kind::gather && in.args.size() == 1 && !loops_->varies(in.args[0]);
      const bool every_row = (program_.depends[i] & ~space_.inner_bits) != 0;
      if ((load || looked_up) && loops_->varies(i) && every_row) reads.push_back(i);
    }
    if (reads.size() != 1) return;
    const std::int64_t bytes = *width * size_in_bytes(program_[reads[0]].dtype);
    // It must fit into L2 together with the current row.
    if (bytes < lowering_.tuned.loops.least_prefetched_row || bytes > lowering_.cpu.l2.share() / 2) return;
    prefetched_ = reads[0];
    prefetch_rows_ = std::max<std::int64_t>(1, lowering_.cpu.bytes_in_flight / bytes);
  }

  /// Returns the row to prefetch in the loop over this one.
  Value later(Value row) {
    return kernel::min(row + prefetch_rows_, context_.dim(program_.points(space_.outer)) - 1);
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
    const std::vector<int> results = results_of(l), folds = folds_of(l);
    if (results.empty()) return;
    for (const int i : results) saved_->hoist(i, row_scope);
    const int chains = folds.empty() ? 1 : chains_of();
    std::vector<std::vector<kernel::Var>> accumulators;  // by reduction, by chain
    for (const int i : folds) {
      accumulators.emplace_back();
      for (int c = 0; c < chains; ++c)
        accumulators.back().push_back(
            b_.var({compute_type(program_[i].dtype), space_.lanes}, reduction_identity(b_, program_[i])));
    }
    const Value n = context_.dim(program_.points(space_.inner));
    std::vector<std::optional<BlockTotal>> totals;  // by reduction; empty if one block is enough
    for (const int i : folds) totals.push_back(total_of(i, chains));
    const bool blocks = std::any_of(totals.begin(), totals.end(), [](const auto& total) { return bool(total); });
    const bool prefetches = prefetched_ && &l == prefetch_loop_;
    const Value later_row = prefetches ? later(row) : row;
    Scope later_scope(emitter_, {{space_.outer, later_row, 1}});
    if (prefetches)
      for (const int arg : program_[*prefetched_].args) emitter_.emit(arg, later_scope);
    const auto body = [&](Value at, Value mask, int chain) {
      Scope scope(emitter_, {{space_.outer, row, 1}, {space_.inner, at, space_.lanes}}, mask, &row_scope);
      if (prefetches) {
        Scope further(emitter_, {{space_.outer, later_row, 1}, {space_.inner, at, space_.lanes}}, {}, &later_scope);
        emitter_.prefetch(*prefetched_, further);
      }
      if (!prefetched_ && &l == &loops_->loops().front())
        prefetch_further({{space_.outer, row, 1}}, at, lowering_.tuned.loops.ahead_in_rows);
      // All reads of saved values precede the stores, which may overwrite them.
      saved_->bind(results, scope, [&](int, const ElementwiseStore& spill) { return reload(spill, at, scope); });
      for (std::size_t r = 0; r < accumulators.size(); ++r) accumulate(folds[r], accumulators[r][chain], scope);
      for (const ElementwiseStore* store : l.stores) emitter_.emit(store->value, scope);
      for (const int i : l.columns)
        columns_->add(context_, i, b_.broadcast(emitter_.emit(program_[i].args[0], scope), space_.lanes), at, mask);
      for (const auto& [value, spill] : l.spilled) emitter_.emit(value, scope);
      for (const ElementwiseStore* store : l.stores) put(*store, scope);
      for (const RowLoop::Spilled& spilled : l.spilled) spill(spilled, at, scope);
    };
    const bool in_chains = chains > 1 || blocks;
    const Value unrolled = in_chains ? n - n % (chains * space_.lanes) : first_cache_line(l, row, n);
    const auto all_chains = [&](Value at) {
      for (int c = 0; c < chains; ++c) body(at + c * space_.lanes, {}, c);
    };
    const auto end_of_block = [&] {
      for (std::size_t r = 0; r < totals.size(); ++r)
        if (totals[r]) move_to_total(folds[r], accumulators[r], *totals[r]);
    };
    if (blocks)
      for_blocks(b_, 0, unrolled, chains * space_.lanes, all_chains, end_of_block);
    else if (in_chains)
      b_.for_loop(0, unrolled, chains * space_.lanes, all_chains);
    else if (b_.constant_value(unrolled) != 0)
      vector_loop(b_, b_.index(0), unrolled, space_.lanes, [&](Value at, Value mask) { body(at, mask, 0); });
    vector_loop(b_, unrolled, n, space_.lanes, [&](Value at, Value mask) { body(at, mask, 0); });
    for (std::size_t r = 0; r < accumulators.size(); ++r)
      finish_reduction(folds[r], accumulators[r], totals[r], row_scope);
    for (const ElementwiseStore* store : l.stores) saved_->keep(store->value, store);
    for (const auto& [value, spill] : l.spilled) saved_->keep(value, spill);
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

  /// Returns the number of accumulators that each reduction of a loop uses in turn: up to the number of vectors in
  /// the width. It does not depend on the added value, so that a sum has the same bits if values are recomputed
  /// instead of read.
  int chains_of() const {
    const auto size = program_.points(space_.inner).value();
    int chains = lowering_.tuned.loops.chains;
    while (size && chains > 1 && *size < chains * space_.lanes) chains /= 2;
    return chains;
  }

  void accumulate(int i, kernel::Var accumulator, Scope& scope) {
    const ElementwiseInstruction& reduce = program_[i];
    Value value = b_.broadcast(emitter_.emit(reduce.args[0], scope), space_.lanes);
    if (scope.mask) value = b_.select(scope.mask, value, b_.broadcast(reduction_identity(b_, reduce), space_.lanes));
    // min and max check their first operand for NaN. With the new value there, the check does not lengthen the
    // dependency chain.
    b_.set(accumulator, b_.apply(reduce.op, {value, b_.get(accumulator)}));
  }

  /// Returns the total of the blocks of a long sum, whose accumulators add `chains` vectors per step; nothing for
  /// others.
  std::optional<BlockTotal> total_of(int i, int chains) const {
    const ElementwiseInstruction& reduce = program_[i];
    const DType compute = compute_type(reduce.dtype);
    auto steps = program_.points(space_.inner).value();
    if (steps) *steps /= chains * space_.lanes;
    if (!adds_in_blocks(reduce.op, compute, steps)) return std::nullopt;
    return BlockTotal(b_, reduce.op, b_.broadcast(reduction_identity(b_, reduce), space_.lanes));
  }

  /// Returns a reduction's chains, combined in pairs lane by lane.
  Value combined(int i, const std::vector<kernel::Var>& chains) {
    std::vector<Value> values;
    for (const kernel::Var& chain : chains) values.push_back(b_.get(chain));
    for (std::size_t n = values.size() / 2; n > 0; n /= 2)
      for (std::size_t c = 0; c < n; ++c) values[c] = b_.apply(program_[i].op, {values[c], values[c + n]});
    return values[0];
  }

  void move_to_total(int i, const std::vector<kernel::Var>& chains, BlockTotal& total) {
    total.add(combined(i, chains));
    for (const kernel::Var& chain : chains) b_.set(chain, reduction_identity(b_, program_[i]));
  }

  void finish_reduction(int i, const std::vector<kernel::Var>& chains, std::optional<BlockTotal>& total,
                        Scope& scope) {
    const ElementwiseInstruction& reduce = program_[i];
    Value value = combined(i, chains);
    if (total) {
      total->add(value);
      value = total->get();
    }
    if (space_.lanes > 1) value = b_.reduce(reduce.op, value);
    scope.bind(i, rounded(b_, value, reduce.dtype));
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
  std::optional<int> prefetched_;                        ///< the load or gather of a later row to prefetch
  const RowLoop* prefetch_loop_ = nullptr;               ///< the loop that prefetches it
  std::int64_t prefetch_rows_ = 1;
};

}  // namespace

std::vector<KernelContext::Built> lower_rows(const CpuContext& context, const Region& region) {
  return RowKernel(context, region).run();
}

}  // namespace lathe::cpu
