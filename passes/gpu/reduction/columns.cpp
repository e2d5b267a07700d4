#include <algorithm>
#include <bit>

#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/reduction/long_reduction.h"
#include "passes/lowering/block_sums.h"
#include "passes/lowering/elementwise/column_space.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// The shape of a block: up to a warp of threads across the columns, with one vector of columns per thread, and the
/// remaining threads down the rows.
struct Threads {
  Threads(const GpuInfo& gpu, const std::optional<std::int64_t>& columns, int lanes) {
    const std::int64_t warp = gpu.warp_threads, wanted = columns ? (*columns + lanes - 1) / lanes : warp;
    across = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(wanted, 1, warp))));
    down = block_threads / across;
  }
  int across, down;
};

class ColumnsKernel {
 public:
  ColumnsKernel(const GpuContext& lowering, const Region& region)
      : lowering_(lowering),
        program_(region_program(lowering.graph, lowering.plan, region)),
        dims_(lowering, region, program_),
        lanes_(program_lanes(program_, lowering.vectors())) {
    LATHE_ASSERT(reduce().kind == ElementwiseInstruction::Kind::reduce && program_.stores.size() == 1);
    choose_splits();
  }

  std::vector<KernelContext::Built> run() {
    std::vector<KernelContext::Built> built;
    if (splits_ > 1) partial_ = lowering_.workspace(type(), Dim(splits_) * kept(), "partial results");
    built.push_back(first());
    if (splits_ > 1) built.push_back(second());
    return built;
  }

 private:
  /// The reductions of a kernel: `rows` of each of `outer` blocks of columns, cut into `splits` of `length`.
  struct Space {
    Dim width;
    int lanes;
    Value columns, rows, outer, splits, length;
    Threads threads;
  };
  struct At {
    Value outer, split, row, column;
  };
  /// Returns the element, or vector of elements, at a position; only the lanes of the mask are valid.
  using Element = std::function<Value(const At&, Value mask)>;
  using Result = std::function<void(const At&, Value mask, Value total)>;

  const ElementwiseInstruction& reduce() const { return program_[program_.size() - 1]; }
  DType type() const { return compute_type(reduce().dtype); }
  Dim kept() const { return program_.points(dims_.outer) * program_.points(dims_.columns); }

  Threads threads_of(const Dim& columns, int lanes) const { return {lowering_.gpu, columns.value(), lanes}; }

  void choose_splits() {
    std::int64_t bytes = 0;
    for (const ElementwiseInstruction& i : program_.code)
      if (i.buffer.valid()) bytes += size_in_bytes(i.dtype);
    const Threads threads = threads_of(program_.points(dims_.columns), lanes_);
    const double down = static_cast<double>(threads.down) / lanes_;
    splits_ = splits_of(lowering_.gpu, lowering_.tuned.reductions,
                        {.results = kept().value(),
                         .length = program_.points(dims_.reduced).value(),
                         .bytes = bytes,
                         .threads = down,
                         .split_threads = down});
  }

  KernelContext::Built first() {
    KernelContext context("columns", KernelRole::column_reduction);
    kernel::Builder& b = context.builder;
    ElementwiseEmitter emitter(context, program_, lowering_.buffer_of);
    declare(context);
    Scope top(emitter, {});
    emitter.hoist(top);
    const Dim width = program_.points(dims_.columns);
    const Value rows = context.dim(program_.points(dims_.reduced));
    const Splits splits = cut(b, rows, splits_, threads_of(width, lanes_).down, 1);
    const Space space{.width = width,
                      .lanes = lanes_,
                      .columns = context.dim(width),
                      .rows = rows,
                      .outer = context.dim(program_.points(dims_.outer)),
                      .splits = splits.count,
                      .length = splits.length,
                      .threads = threads_of(width, lanes_)};
    const auto element = [&](const At& at, Value mask) {
      Scope scope(emitter,
                  {{dims_.outer, at.outer, 1}, {dims_.reduced, at.row, 1}, {dims_.columns, at.column, lanes_}}, mask,
                  &top);
      return emitter.emit(reduce().args[0], scope);
    };
    const auto result = [&](const At& at, Value mask, Value total) {
      if (splits_ == 1)
        return put(emitter, {{dims_.outer, at.outer, 1}, {dims_.columns, at.column, lanes_}}, mask, total, top);
      const Value row = at.split * space.outer + at.outer;
      b.store(context.buffer(partial_), row * space.columns + at.column, total, mask);
    };
    blocks(b, space, element, result);
    auto built = context.finish();
    built.launch.flops = program_.points(dims_.reduced) * kept();
    return built;
  }

  /// Combines the splits, which are the rows of a matrix of all kept elements.
  KernelContext::Built second() {
    KernelContext context("combine_columns", KernelRole::combine_columns);
    kernel::Builder& b = context.builder;
    ElementwiseEmitter emitter(context, program_, lowering_.buffer_of);
    context.declare(partial_, type(), true, false);
    const ir::ValueId node = program_.stores[0].node;
    context.declare(lowering_.buffer_of(node), lowering_.graph[node].type.dtype, false, true);
    Scope top(emitter, {});
    const Value all = context.dim(kept()), columns = context.dim(program_.points(dims_.columns));
    const int down = threads_of(program_.points(dims_.columns), lanes_).down;
    const Value count = cut(b, context.dim(program_.points(dims_.reduced)), splits_, down, 1).count;
    const Space space{.width = kept(),
                      .lanes = 1,
                      .columns = all,
                      .rows = count,
                      .outer = b.index(1),
                      .splits = b.index(1),
                      .length = count,
                      .threads = threads_of(kept(), 1)};
    const auto element = [&](const At& at, Value) {
      return b.load(context.buffer(partial_), at.row * all + at.column);
    };
    const auto result = [&](const At& at, Value, Value total) {
      put(emitter, {{dims_.outer, at.column / columns, 1}, {dims_.columns, at.column % columns, 1}}, {}, total, top);
    };
    blocks(b, space, element, result);
    return context.finish();
  }

  void blocks(kernel::Builder& b, const Space& space, const Element& element, const Result& result) const {
    const Threads& threads = space.threads;
    const int width = threads.across * space.lanes;
    const Value across = b.ceil_div(space.columns, width);
    const auto block = [&](Value i) {
      const Value first_column = i % across * width, position = i / across;
      const kernel::Buffer shared = b.alloc(type(), threads.down * width, kernel::Space::shared, "partial");
      const auto thread = [&](Value y, Value x) {
        const At at{position / space.splits, position % space.splits, y, first_column + x * space.lanes};
        const Value own = (y * threads.across + x) * space.lanes;
        b.store(shared, own, down(b, space, at, element));
        for (int half = threads.down / 2; half >= 1; half /= 2) {
          b.barrier();
          b.if_(y < half, [&] {
            const Value other = b.load(shared, own + half * width, space.lanes);
            b.store(shared, own, b.apply(reduce().op, {b.load(shared, own, space.lanes), other}));
          });
        }
        // The results are in the first row, which its own threads wrote.
        b.if_(equal(y, 0) && at.column < space.columns, [&] {
          const Value total = b.load(shared, own, space.lanes);
          unmasked_or_masked(b, at.column, space.columns, space.lanes, space.width,
                             [&](Value mask) { result(at, mask, total); });
        });
      };
      b.for_loop(
          0, threads.down, 1,
          [&](Value y) { b.for_loop(0, threads.across, 1, [&](Value x) { thread(y, x); }, LoopKind::thread_x); },
          LoopKind::thread_y);
    };
    b.for_loop(0, space.outer * space.splits * across, 1, block, LoopKind::block_x);
  }

  /// Declares the kernel's inputs and its output: the result, or the buffer of partial results.
  void declare(KernelContext& context) const {
    if (splits_ == 1) return declare_buffers(context, {&program_}, lowering_);
    ElementwiseProgram loads = program_;
    loads.stores.clear();
    declare_buffers(context, {&loads}, lowering_);
    context.declare(partial_, type(), false, true);
  }

  /// Reduces one thread's columns, from its row of the split on.
  Value down(kernel::Builder& b, const Space& space, const At& first, const Element& element) const {
    const Value identity = b.broadcast(reduction_identity(b, reduce()), space.lanes);
    const kernel::Var sum = b.var(identity);
    const Value lo = first.split * space.length;
    const Value hi = b.select(first.column < space.columns, kernel::min(lo + space.length, space.rows), lo);
    const auto add_row = [&](Value row) {
      unmasked_or_masked(b, first.column, space.columns, space.lanes, space.width, [&](Value mask) {
        const Value value = b.broadcast(element({first.outer, first.split, row, first.column}, mask), space.lanes);
        b.set(sum, b.apply(reduce().op, {b.get(sum), value}));
      });
    };
    auto rows = program_.points(dims_.reduced).value();
    if (rows) *rows /= space.threads.down;
    if (!adds_in_blocks(reduce().op, type(), rows)) {
      b.for_loop(lo + first.row, hi, space.threads.down, add_row);
      return b.get(sum);
    }
    BlockTotal total(b, reduce().op, identity);
    for_blocks(b, lo + first.row, hi, space.threads.down, add_row, [&] {
      total.add(b.get(sum));
      b.set(sum, identity);
    });
    return total.get();
  }

  void put(ElementwiseEmitter& emitter, std::vector<IndexGroup> groups, Value mask, Value total, Scope& top) const {
    kernel::Builder& b = emitter.context().builder;
    const DType dtype = reduce().dtype;
    Scope scope(emitter, std::move(groups), mask, &top);
    const ElementwiseStore& store = program_.stores[0];
    emitter.store(store.node, dtype, store.form, rounded(b, total, dtype), scope);
  }

  const GpuContext& lowering_;
  ElementwiseProgram program_;
  const ColumnSpace dims_;
  int lanes_;
  int splits_ = 1, partial_ = -1;
};

}  // namespace

std::vector<KernelContext::Built> lower_columns(const GpuContext& context, const Region& region) {
  return ColumnsKernel(context, region).run();
}

}  // namespace lathe::gpu
