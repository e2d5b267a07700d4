#include <algorithm>

#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Scope = PointEmitter::Scope;

namespace {

constexpr int column_threads = 32, row_threads = 8;
constexpr std::int64_t pieces = 64;  // of long columns
constexpr std::int64_t long_rows = 2048;

class ColumnsKernel {
 public:
  ColumnsKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering), program_(region_program(lowering.graph, lowering.plan, region)) {
    const auto reduced = reduced_dims(lowering.graph, lowering.graph[region.members[0]]);
    int last = -1;
    for (const int d : reduced)
      if (!program_.domain[d].is(1)) last = std::max(last, d);
    for (int d = 0; d < program_.domain.rank(); ++d) {
      const bool folded = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
      (folded ? reduced_ : d > last ? columns_ : outer_).push_back(d);
    }
    LATHE_ASSERT(reduce().kind == PointInstruction::Kind::reduce && program_.stores.size() == 1);
    const auto rows = program_.points(reduced_).value();
    cut_ = !rows || *rows >= long_rows;
  }

  std::vector<KernelContext::Built> run() {
    std::vector<KernelContext::Built> built;
    const Dim kept = program_.points(outer_) * program_.points(columns_);
    if (cut_) partial_ = lowering_.workspace(compute_type(reduce().dtype), Dim(pieces) * kept, "partial sums");
    built.push_back(first());
    if (cut_) built.push_back(second(kept));
    return built;
  }

 private:
  const PointInstruction& reduce() const { return program_[program_.size() - 1]; }

  KernelContext::Built first() {
    KernelContext context("columns");
    kernel::Builder& b = context.builder;
    PointEmitter emitter(context, program_, lowering_.buffer_of);
    declare(context);
    const int lanes = program_lanes(program_, vectors);
    Scope top(emitter, {});
    emitter.hoist(top);
    const Value columns = context.dim(program_.points(columns_)), rows = context.dim(program_.points(reduced_));
    const Value across = b.ceil_div(columns, column_threads * lanes), outer = context.dim(program_.points(outer_));
    const Value count = b.index(cut_ ? pieces : 1), length = b.ceil_div(rows, count);
    const auto block = [&](Value i) {
      const Value first_column = i % across * (column_threads * lanes), place = i / across;
      const Value piece = place % count, lo = piece * length;
      kernel::Buffer shared = b.alloc(compute_type(reduce().dtype), row_threads * column_threads * lanes,
                                      kernel::Space::shared, "partial");
      const auto thread = [&](Value y, Value x) {
        const Value column = first_column + x * lanes;
        const Value hi = b.select(column < columns, kernel::min(lo + length, rows), lo);
        const Value sum = down(emitter, top, place / count, column, columns, lo + y, hi, lanes);
        const Value own = (y * column_threads + x) * lanes;
        b.store(shared, own, sum);
        for (int half = row_threads / 2; half >= 1; half /= 2) {
          b.barrier();
          b.if_(y < half, [&] {
            const Value other = b.load(shared, own + half * column_threads * lanes, lanes);
            b.store(shared, own, b.apply(reduce().op, {b.load(shared, own, lanes), other}));
          });
        }
        // The results lie in the first line, which its own threads wrote.
        b.if_(equal(y, 0) && column < columns, [&] {
          const Value total = b.load(shared, own, lanes);
          unmasked_or_masked(b, column, columns, lanes, program_.points(columns_), [&](Value mask) {
            if (cut_)
              b.store(context.buffer(partial_), (piece * outer + place / count) * columns + column, total, mask);
            else
              put(emitter, {{outer_, place / count, 1}, {columns_, column, lanes}}, mask, total, top);
          });
        });
      };
      b.for_loop(
          0, row_threads, 1,
          [&](Value y) { b.for_loop(0, column_threads, 1, [&](Value x) { thread(y, x); }, LoopKind::thread_x); },
          LoopKind::thread_y);
    };
    b.for_loop(0, outer * count * across, 1, block, LoopKind::block_x);
    auto built = context.finish();
    built.launch.flops = program_.points(reduced_) * program_.points(columns_) * program_.points(outer_);
    return built;
  }

  void declare(KernelContext& context) const {
    if (!cut_) return declare_buffers(context, {&program_}, lowering_);
    PointProgram loads = program_;
    loads.stores.clear();
    declare_buffers(context, {&loads}, lowering_);
    context.declare(partial_, compute_type(reduce().dtype), false, true);
  }

  /// One thread's way down its columns: rows lo, lo + 8, ... below hi.
  Value down(PointEmitter& emitter, Scope& top, Value outer, Value column, Value columns, Value lo, Value hi,
             int lanes) {
    kernel::Builder& b = emitter.context().builder;
    const kernel::Var sum = b.var({compute_type(reduce().dtype), lanes}, reduction_identity(b, reduce()));
    b.for_loop(lo, hi, row_threads, [&](Value row) {
      unmasked_or_masked(b, column, columns, lanes, program_.points(columns_), [&](Value mask) {
        Scope scope(emitter, {{outer_, outer, 1}, {reduced_, row, 1}, {columns_, column, lanes}}, mask, &top);
        const Value value = b.broadcast(emitter.emit(reduce().args[0], scope), lanes);
        b.set(sum, b.apply(reduce().op, {b.get(sum), value}));
      });
    });
    return b.get(sum);
  }

  void put(PointEmitter& emitter, std::vector<IndexGroup> groups, Value mask, Value total, Scope& top) const {
    kernel::Builder& b = emitter.context().builder;
    const DType dtype = reduce().dtype;
    Scope scope(emitter, std::move(groups), mask, &top);
    const PointStore& store = program_.stores[0];
    emitter.store(store.node, dtype, store.form, rounded(b, total, dtype), scope);
  }

  /// Adds the pieces, in order.
  KernelContext::Built second(const Dim& kept) {
    KernelContext context("join_columns");
    kernel::Builder& b = context.builder;
    PointEmitter emitter(context, program_, lowering_.buffer_of);
    context.declare(partial_, compute_type(reduce().dtype), true, false);
    const ir::ValueId node = program_.stores[0].node;
    context.declare(lowering_.buffer_of(node), lowering_.graph[node].type.dtype, false, true);
    Scope top(emitter, {});
    const Value n = context.dim(kept);
    for_threads(b, n, 1, [&](Value at) {
      const kernel::Var sum = b.var(reduction_identity(b, reduce()));
      b.for_loop(0, pieces, 1, [&](Value piece) {
        b.set(sum, b.apply(reduce().op, {b.get(sum), b.load(context.buffer(partial_), piece * n + at)}));
      });
      const Value columns = context.dim(program_.points(columns_));
      put(emitter, {{outer_, at / columns, 1}, {columns_, at % columns, 1}}, {}, b.get(sum), top);
    });
    return context.finish();
  }

  const LoweringContext& lowering_;
  PointProgram program_;
  std::vector<int> outer_, reduced_, columns_;
  bool cut_ = false;
  int partial_ = -1;
};

}  // namespace

std::vector<KernelContext::Built> lower_columns(const LoweringContext& context, const Region& region) {
  return ColumnsKernel(context, region).run();
}

}  // namespace lathe::gpu
