#include <algorithm>
#include <optional>

#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/reduction/rows_plan.h"
#include "passes/lowering/block_sums.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits one step of a rows region with reductions.
class RowsKernel {
 public:
  RowsKernel(const GpuContext& lowering, const RowsPlan& plan, const RowsPlan::Step& step)
      : plan_(plan),
        step_(step),
        context_(
            !plan.is_cut()            ? "rows"
            : step.first == step.last ? "combine_rows"
                                      : "row_splits",
            plan.is_cut() && step.first == step.last ? KernelRole::combine_row_splits : KernelRole::row_reduction),
        program_(plan.part(step)),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder),
        space_(plan.space),
        saved_(lowering, program_, emitter_, plan.loops) {
    declare_buffers(context_, {&program_}, lowering);
    if (!plan.is_cut()) return;
    for (const auto& [reduction, buffer] : plan.partials) {
      const bool reads = plan.loops.level(reduction) <= step.first;
      if (program_[reduction].kind == Kind::reduce)
        context_.declare(buffer, compute_type(program_[reduction].dtype), reads, !reads);
    }
  }

  KernelContext::Built run() {
    Scope top(emitter_, {});
    emitter_.hoist(top);
    const Value rows = context_.dim(program_.points(space_.outer));
    width_ = context_.dim(program_.points(space_.inner));
    splits_ = cut(b_, width_, plan_.splits, plan_.threads * space_.lanes, space_.lanes);
    const Value here = step_.first == step_.last ? b_.index(1) : splits_.count;
    const auto block = [&](Value first) {
      SharedTree tree(b_, reduction_types(), plan_.threads * plan_.rows);
      tree_ = &tree;
      allocate_kept();
      const auto row = [&](Value y) {
        b_.for_loop(
            0, plan_.threads, 1,
            [&](Value x) { thread(first / here + y, rows, first % here, x, y * plan_.threads + x, top); },
            LoopKind::thread_x);
      };
      b_.for_loop(0, plan_.rows, 1, row, LoopKind::thread_y);
    };
    b_.for_loop(0, rows * here, plan_.rows, block, LoopKind::block_x);
    return context_.finish();
  }

 private:
  const RowLoop& row_loop(int l) const { return plan_.loops.loops()[l]; }

  void allocate_kept() {
    kept_.clear();
    for (const std::vector<int>& loads : plan_.kept)
      for (const int i : loads)
        if (!kept_.contains(i))
          kept_[i] = b_.alloc(program_[i].dtype, *program_.points(space_.inner).value() + space_.lanes,
                              kernel::Space::shared, "row");
  }

  std::vector<DType> reduction_types() const {
    std::vector<DType> types;
    if (plan_.threads == 1 || plan_.threads == kernel::warp_threads) return types;
    for (const RowLoop& loop : plan_.loops.loops())
      for (const int i : loop.reductions)
        if (program_[i].kind == Kind::reduce) types.push_back(compute_type(program_[i].dtype));
    return types;
  }

  /// Threads of rows past the last one still take part in the barriers: they use the last row and run no iteration.
  void thread(Value row, Value rows, Value split, Value x, Value slot, Scope& top) {
    const Value exists = row < rows;
    const Value here = plan_.rows > 1 ? kernel::min(row, rows - 1) : row;
    const Value n = plan_.rows > 1 ? b_.select(exists, width_, b_.index(0)) : width_;
    Scope scope(emitter_, {{space_.outer, here, 1}}, {}, &top);
    next_memory_ = 0;
    saved_.clear();
    for (int l = 0; l < step_.first; ++l) combine(l, here, x, slot, scope);
    for (int l = step_.first; l < step_.last; ++l) {
      const RowLoop& done = row_loop(l);
      const Value lo = split * splits_.length, hi = plan_.is_cut() ? kernel::min(lo + splits_.length, n) : n;
      const auto values = loop(done, here, lo, hi, x, slot, scope);
      plan_.is_cut() ? keep(done, values, here * splits_.count + split, x) : bind(done.reductions, values, scope);
    }
    if (step_.singles) store_singles(exists, x, scope);
  }

  void store_singles(Value exists, Value x, Scope& scope) {
    std::vector<const ElementwiseStore*> single;
    for (const ElementwiseStore& store : program_.stores)
      if (!plan_.loops.varies(store)) single.push_back(&store);
    if (single.empty()) return;
    for (const ElementwiseStore* store : single) emitter_.emit(store->value, scope);
    b_.if_(exists && equal(x, 0), [&] {
      for (const ElementwiseStore* store : single) put(*store, scope);
    });
  }

  void bind(const std::vector<int>& reductions, const std::vector<Value>& values, Scope& scope) {
    for (std::size_t r = 0; r < values.size(); ++r)
      scope.bind(reductions[r], rounded(b_, values[r], program_[reductions[r]].dtype));
  }

  /// Stores the results of a split, to be combined later.
  void keep(const RowLoop& l, const std::vector<Value>& values, Value offset, Value x) {
    if (values.empty()) return;
    b_.if_(equal(x, 0), [&] {
      for (std::size_t r = 0; r < values.size(); ++r)
        b_.store(context_.buffer(plan_.partials.at(l.reductions[r])), offset, values[r]);
    });
  }

  /// Combines the results of an earlier kernel's splits, and records where that kernel stored values along the row.
  void combine(int l, Value row, Value x, Value slot, Scope& scope) {
    const std::vector<int> reductions = plan_.combined(program_, l);
    std::vector<kernel::Var> accumulators;
    for (const int i : reductions) accumulators.push_back(b_.var(reduction_identity(b_, program_[i])));
    if (!reductions.empty())
      b_.for_loop(x, splits_.count, plan_.threads, [&](Value split) {
        for (std::size_t r = 0; r < reductions.size(); ++r) {
          const kernel::Buffer partial = context_.buffer(plan_.partials.at(reductions[r]));
          const Value value = b_.load(partial, row * splits_.count + split);
          b_.set(accumulators[r], b_.apply(program_[reductions[r]].op, {b_.get(accumulators[r]), value}));
        }
      });
    std::vector<Value> values;
    for (const kernel::Var& accumulator : accumulators) values.push_back(b_.get(accumulator));
    bind(reductions, combined(reductions, std::move(values), x, slot), scope);
    keep_spills(row_loop(l));
  }

  void keep_spills(const RowLoop& l) {
    for (const ElementwiseStore* store : l.stores) saved_.keep(store->value, store);
    for (const auto& [value, spill] : l.spilled) saved_.keep(value, spill);
  }

  void put(const ElementwiseStore& store, Scope& scope) {
    emitter_.store(store.node, program_[store.value].dtype, store.form, emitter_.emit(store.value, scope), scope);
  }

  /// Runs over [lo, hi) of the row; returns the block's results of its reductions.
  std::vector<Value> loop(const RowLoop& l, Value row, Value lo, Value hi, Value x, Value slot, Scope& row_scope) {
    if (l.reductions.empty() && l.stores.empty()) return {};
    std::vector<int> results;
    for (const int i : l.reductions) results.push_back(program_[i].args[0]);
    for (const ElementwiseStore* store : l.stores) results.push_back(store->value);
    for (const int i : results) saved_.hoist(i, row_scope);
    std::vector<kernel::Var> accumulators;
    for (const int i : l.reductions)
      accumulators.push_back(
          b_.var({compute_type(program_[i].dtype), space_.lanes}, reduction_identity(b_, program_[i])));
    const int step = plan_.threads * space_.lanes;
    std::vector<std::optional<BlockTotal>> totals;
    for (const int i : l.reductions) totals.push_back(total_of(i, step));
    const auto add = [&](Value at) {
      unmasked_or_masked(b_, at, hi, space_.lanes, program_.points(space_.inner),
                         [&](Value mask) { split(l, results, row, at, mask, accumulators, row_scope); });
    };
    const auto end_of_block = [&] {
      for (std::size_t r = 0; r < totals.size(); ++r) {
        if (!totals[r]) continue;
        totals[r]->add(of_lanes(l.reductions[r], accumulators[r]));
        b_.set(accumulators[r], reduction_identity(b_, program_[l.reductions[r]]));
      }
    };
    const bool blocks = std::any_of(totals.begin(), totals.end(), [](const auto& total) { return bool(total); });
    if (blocks)
      for_blocks(b_, lo + x * space_.lanes, hi, step, add, end_of_block);
    else
      b_.for_loop(lo + x * space_.lanes, hi, step, add);
    std::vector<Value> values;
    for (std::size_t r = 0; r < totals.size(); ++r)
      values.push_back(totals[r] ? totals[r]->get() : of_lanes(l.reductions[r], accumulators[r]));
    values = combined(l.reductions, std::move(values), x, slot);
    keep_spills(l);
    return values;
  }

  /// Returns the total of a thread's blocks, for a long sum whose threads process `step` elements at a time.
  std::optional<BlockTotal> total_of(int i, int step) {
    const ElementwiseInstruction& reduce = program_[i];
    auto steps = program_.points(space_.inner).value();
    if (steps) *steps /= step;
    if (!adds_in_blocks(reduce.op, compute_type(reduce.dtype), steps)) return std::nullopt;
    return BlockTotal(b_, reduce.op, reduction_identity(b_, reduce));
  }

  Value of_lanes(int i, kernel::Var accumulator) {
    const Value value = b_.get(accumulator);
    return value.type.lanes > 1 ? b_.reduce(program_[i].op, value) : value;
  }

  /// Processes one vector of the row. All values are computed before the first store, which may overwrite other
  /// inputs or saved values.
  void split(const RowLoop& l, const std::vector<int>& results, Value row, Value at, Value mask,
             const std::vector<kernel::Var>& accumulators, Scope& row_scope) {
    Scope scope(emitter_, {{space_.outer, row, 1}, {space_.inner, at, space_.lanes}}, mask, &row_scope);
    saved_.bind(results, scope, [&](int, const ElementwiseStore& spill) {  // stored by the same thread
      return emitter_.reload(spill.node, spill.form, scope);
    });
    keep_loads(static_cast<int>(&l - plan_.loops.loops().data()), at, mask, scope);
    for (std::size_t r = 0; r < accumulators.size(); ++r) {
      const ElementwiseInstruction& reduce = program_[l.reductions[r]];
      Value value = b_.broadcast(emitter_.emit(reduce.args[0], scope), space_.lanes);
      if (mask) value = b_.select(mask, value, b_.broadcast(reduction_identity(b_, reduce), space_.lanes));
      b_.set(accumulators[r], b_.apply(reduce.op, {b_.get(accumulators[r]), value}));
    }
    for (const ElementwiseStore* store : l.stores) emitter_.emit(store->value, scope);
    for (const ElementwiseStore* store : l.stores) put(*store, scope);
    for (const auto& [value, spill] : l.spilled)
      emitter_.store(spill->node, program_[value].dtype, spill->form, emitter_.emit(value, scope), scope);
  }

  /// Stores the loads that later loops use, or binds those that an earlier loop stored.
  void keep_loads(int loop, Value at, Value mask, Scope& scope) {
    for (const int i : plan_.kept[loop]) {
      const bool is_first = std::none_of(plan_.kept.begin(), plan_.kept.begin() + loop, [&](const auto& before) {
        return std::find(before.begin(), before.end(), i) != before.end();
      });
      const DType dtype = program_[i].dtype;
      if (is_first)
        b_.store(kept_.at(i), at, b_.cast(b_.broadcast(emitter_.emit(i, scope), space_.lanes), dtype), mask);
      else
        scope.bind(i, b_.cast(b_.load(kept_.at(i), at, space_.lanes, mask), compute_type(dtype)));
    }
  }

  /// Combines the values of the threads.
  std::vector<Value> combined(const std::vector<int>& reductions, std::vector<Value> values, Value x, Value slot) {
    std::vector<std::size_t> memory;
    std::vector<ScalarOp> ops;
    for (std::size_t r = 0; r < values.size(); ++r) {
      ops.push_back(program_[reductions[r]].op);
      memory.push_back(next_memory_++);
    }
    return values.empty() ? values : tree_->reduce(memory, ops, values, slot, x, plan_.threads);
  }

  const RowsPlan& plan_;
  const RowsPlan::Step step_;
  KernelContext context_;
  const ElementwiseProgram program_;
  ElementwiseEmitter emitter_;
  kernel::Builder& b_;
  const RowSpace& space_;
  SavedValues saved_;
  Value width_;
  Splits splits_;
  SharedTree* tree_ = nullptr;
  std::map<int, kernel::Buffer> kept_;  ///< by load
  std::size_t next_memory_ = 0;
};

}  // namespace

std::vector<KernelContext::Built> lower_rows(const GpuContext& context, const Region& region) {
  const RowsPlan plan(context, region);
  std::vector<KernelContext::Built> built;
  for (const RowsPlan::Step& step : plan.steps) built.push_back(RowsKernel(context, plan, step).run());
  return built;
}

}  // namespace lathe::gpu
