#include <algorithm>
#include <bit>

#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/kept_values.h"
#include "passes/lowering/row_space.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Kind = PointInstruction::Kind;
using Scope = PointEmitter::Scope;

namespace {

/// Emits a region of rows with reductions.
class RowsKernel {
 public:
  RowsKernel(const LoweringContext& lowering, const Region& region)
      : context_("rows"),
        program_(region_program(lowering.graph, lowering.plan, region)),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder),
        space_(program_, region.inner, vectors),
        loops_(lowering, program_, space_.inner_bits),
        kept_(lowering, program_, emitter_, loops_) {
    declare_buffers(context_, {&program_}, lowering);
    choose_threads();
  }

  KernelContext::Built run() {
    Scope top(emitter_, {});
    emitter_.hoist(top);
    const Value rows = context_.dim(program_.points(space_.outer));
    const auto block = [&](Value first) {
      SharedTree tree(b_, reduction_types(), row_threads_ * block_rows_);
      tree_ = &tree;
      const auto line = [&](Value y) {
        b_.for_loop(
            0, row_threads_, 1, [&](Value x) { thread(first + y, rows, x, y * row_threads_ + x, top); },
            LoopKind::thread_x);
      };
      b_.for_loop(0, block_rows_, 1, line, LoopKind::thread_y);
    };
    b_.for_loop(0, rows, block_rows_, block, LoopKind::block_x);
    return context_.finish();
  }

 private:
  /// About four vectors of a row a thread, 32 to 256 threads a row where it is long enough; one row of all a block of
  /// 1024. An unknown length counts as long.
  void choose_threads() {
    const auto width = program_.points(space_.inner).value();
    const std::int64_t pieces = width ? (*width + space_.lanes - 1) / space_.lanes : 512;
    const auto enough =
        static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(pieces / 4, 32, 256))));
    const auto most =
        static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(pieces, 1, 1024))));
    const bool alone = program_.points(space_.outer).is(1);
    row_threads_ = alone ? most : std::min(enough, most);
    block_rows_ = alone ? 1 : std::max(1, block_threads / row_threads_);
  }

  std::vector<DType> reduction_types() const {
    std::vector<DType> types;
    if (row_threads_ == 1 || row_threads_ == kernel::warp_threads) return types;
    for (const RowLoop& loop : loops_.loops())
      for (const int i : loop.reductions) types.push_back(compute_type(program_[i].dtype));
    return types;
  }

  /// Threads of rows beyond the last stay to meet the barriers: they take the last row's place and run no iteration.
  void thread(Value row, Value rows, Value x, Value slot, Scope& top) {
    const Value exists = row < rows;
    const Value here = block_rows_ > 1 ? kernel::min(row, rows - 1) : row;
    const Value width = context_.dim(program_.points(space_.inner));
    const Value n = block_rows_ > 1 ? b_.select(exists, width, b_.index(0)) : width;
    Scope scope(emitter_, {{space_.outer, here, 1}}, {}, &top);
    next_memory_ = 0;
    kept_.clear();
    for (const RowLoop& l : loops_.loops()) loop(l, here, x, slot, n, scope);
    std::vector<const PointStore*> single;
    for (const PointStore& store : program_.stores)
      if (!loops_.varies(store)) single.push_back(&store);
    if (single.empty()) return;
    for (const PointStore* store : single) emitter_.emit(store->value, scope);
    b_.if_(exists && equal(x, 0), [&] {
      for (const PointStore* store : single) put(*store, scope);
    });
  }

  void put(const PointStore& store, Scope& scope) {
    emitter_.store(store.node, program_[store.value].dtype, store.form, emitter_.emit(store.value, scope), scope);
  }

  void loop(const RowLoop& l, Value row, Value x, Value slot, Value n, Scope& row_scope) {
    if (l.reductions.empty() && l.stores.empty()) return;
    std::vector<int> results;
    for (const int i : l.reductions) results.push_back(program_[i].args[0]);
    for (const PointStore* store : l.stores) results.push_back(store->value);
    for (const int i : results) kept_.hoist(i, row_scope);
    std::vector<kernel::Var> accumulators;
    for (const int i : l.reductions)
      accumulators.push_back(
          b_.var({compute_type(program_[i].dtype), space_.lanes}, reduction_identity(b_, program_[i])));
    b_.for_loop(x * space_.lanes, n, row_threads_ * space_.lanes, [&](Value at) {
      unmasked_or_masked(b_, at, n, space_.lanes, program_.points(space_.inner),
                         [&](Value mask) { piece(l, results, row, at, mask, accumulators, row_scope); });
    });
    finish(l, accumulators, x, slot, row_scope);
    for (const PointStore* store : l.stores) kept_.keep(store->value, store);
    for (const auto& [value, place] : l.parked) kept_.keep(value, place);
  }

  /// One vector of the row. All values come before the first store: it may go where others, or kept ones, are read.
  void piece(const RowLoop& l, const std::vector<int>& results, Value row, Value at, Value mask,
             const std::vector<kernel::Var>& accumulators, Scope& row_scope) {
    Scope scope(emitter_, {{space_.outer, row, 1}, {space_.inner, at, space_.lanes}}, mask, &row_scope);
    kept_.bind(results, scope, [&](int, const PointStore& place) {  // it is the same thread's
      return emitter_.reload(place.node, place.form, scope);
    });
    for (std::size_t r = 0; r < accumulators.size(); ++r) {
      const PointInstruction& reduce = program_[l.reductions[r]];
      Value value = b_.broadcast(emitter_.emit(reduce.args[0], scope), space_.lanes);
      if (mask) value = b_.select(mask, value, b_.broadcast(reduction_identity(b_, reduce), space_.lanes));
      b_.set(accumulators[r], b_.apply(reduce.op, {b_.get(accumulators[r]), value}));
    }
    for (const PointStore* store : l.stores) emitter_.emit(store->value, scope);
    for (const PointStore* store : l.stores) put(*store, scope);
    for (const auto& [value, place] : l.parked)
      emitter_.store(place->node, program_[value].dtype, place->form, emitter_.emit(value, scope), scope);
  }

  /// Joins the lanes, then the threads.
  void finish(const RowLoop& l, const std::vector<kernel::Var>& accumulators, Value x, Value slot, Scope& scope) {
    std::vector<std::size_t> memory;
    std::vector<ScalarOp> ops;
    std::vector<Value> values;
    for (std::size_t r = 0; r < accumulators.size(); ++r) {
      const Value value = b_.get(accumulators[r]);
      ops.push_back(program_[l.reductions[r]].op);
      values.push_back(space_.lanes > 1 ? b_.reduce(ops.back(), value) : value);
      memory.push_back(next_memory_++);
    }
    if (values.empty()) return;
    values = tree_->join(memory, ops, values, slot, x, row_threads_);
    for (std::size_t r = 0; r < values.size(); ++r) {
      scope.bind(l.reductions[r], rounded(b_, values[r], program_[l.reductions[r]].dtype));
    }
  }

  KernelContext context_;
  PointProgram program_;
  PointEmitter emitter_;
  kernel::Builder& b_;
  RowSpace space_;
  RowLoops loops_;
  KeptValues kept_;
  int row_threads_ = 1, block_rows_ = 1;
  SharedTree* tree_ = nullptr;
  std::size_t next_memory_ = 0;
};

}  // namespace

KernelContext::Built lower_rows(const LoweringContext& context, const Region& region) {
  return RowsKernel(context, region).run();
}

}  // namespace lathe::gpu
