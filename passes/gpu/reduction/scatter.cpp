#include <optional>

#include "ir/ops/rules/operand_rules.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/block_sums.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// out[pre, size, post] = sum over t of updates[pre, t, post] with indices[t] == row.
///
/// A block sorts a chunk of positions t by index, as keys: index * chunk + the offset of t in its chunk. The keys of
/// one index in a chunk are a run. A row's updates are added by runs, from chunk to chunk, in the order of positions:
///
///   indices 5 3 5 5 | 3 5 3     keys 3:1 5:0 5:2 5:3 | 3:0 3:2 5:1     row 5: a run of 3 at slot 1, then 1 at slot 6
class ScatterKernels {
 public:
  ScatterKernels(const GpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        node_(lowering.graph[id]),
        out_(lowering.buffer_of(id)),
        chunk_(lowering.tuned.reductions.sorted_positions) {
    const ir::Graph& graph = lowering.graph;
    const Shape& updates = graph[node_.operands[1]].type.shape;
    const int index_rank = graph[node_.operands[0]].type.rank();
    const int dim = ir::rules::normalize_axis(node_.attrs.get<std::int64_t>("dim"), node_.type.rank());
    for (int d = 0; d < updates.rank(); ++d) (d < dim ? pre_ : d < dim + index_rank ? index_ : post_).push_back(d);
    std::vector<int> all(pre_);
    all.insert(all.end(), index_.begin(), index_.end());
    all.insert(all.end(), post_.begin(), post_.end());
    updates_ = operand_program(graph, lowering.plan, node_.operands[1], all, updates);
    indices_ = operand_program(graph, lowering.plan, node_.operands[0], index_, updates);
    size_ = node_.type.shape[dim].unnamed();
    count_ = updates_.program.points(index_);
    one_chunk_ = count_.value() && *count_.value() <= chunk_;
    lanes_ = post_.empty() ? 1 : program_lanes(updates_.program, lowering.vectors());
    keys_ = lowering.workspace(i64, count_, "keys of sorted positions");
    lengths_ = lowering.workspace(i32, count_, "lengths of runs");
    first_ = lowering.workspace(boolean, count_, "first runs");
    if (!one_chunk_) next_ = lowering.workspace(i64, count_, "next runs");
  }

  std::vector<KernelContext::Built> run() {
    std::vector<KernelContext::Built> built;
    built.push_back(clear());
    built.push_back(sort());
    if (!one_chunk_) built.push_back(link());
    built.push_back(add());
    return built;
  }

 private:
  KernelContext::Built clear() {
    KernelContext context("clear", KernelRole::clear);
    context.declare(out_, node_.type.dtype, false, true);
    kernel::Builder& b = context.builder;
    const Dim elements = node_.type.shape.numel();
    const int lanes = lowering_.vectors().lanes(node_.type.dtype);
    const Value n = context.dim(elements);
    for_threads(b, n, lanes, [&](Value at) {
      const Value zero = b.cast(b.constant(compute_type(node_.type.dtype), 0, lanes), node_.type.dtype);
      unmasked_or_masked(b, at, n, lanes, elements,
                         [&](Value mask) { b.store(context.buffer(out_), at, zero, mask); });
    });
    return context.finish();
  }

  /// Returns the offset of a slot in its chunk, or of the position that a key encodes.
  Value place(Value of) const { return bits(of, of.builder->index(chunk_ - 1)); }
  static Value bits(Value a, Value b) { return a.builder->apply(ScalarOp::bit_and, {a, b}); }
  /// Returns 2^exponent, from 1 to `most`. The explicit bounds show that it fits into 32 bits.
  static Value power(Value exponent, std::int64_t most) {
    kernel::Builder& b = *exponent.builder;
    return kernel::min(kernel::max(b.apply(ScalarOp::shift_left, {b.index(1), exponent}), 1), most);
  }

  /// Sorts one chunk per block. A single chunk is linked as well.
  KernelContext::Built sort() {
    KernelContext context(one_chunk_ ? "link_indices" : "sort_indices",
                          one_chunk_ ? KernelRole::scatter_link : KernelRole::scatter_sort);
    kernel::Builder& b = context.builder;
    ElementwiseEmitter indices(context, indices_.program, lowering_.buffer_of);
    declare_buffers(context, {&indices_.program}, lowering_);
    context.declare(keys_, i64, false, true);
    if (one_chunk_) declare_links(context);
    const std::int64_t code = context.check_code("an index is not in [0, " + size_.to_string() + ")");
    Scope top(indices, {});
    const int threads = block_threads;
    const Value count = context.dim(count_);
    const Dim around = updates_.program.points(pre_) * updates_.program.points(post_);
    const auto key_of = [&](Value t) {
      Scope scope(indices, {{index_, t, 1}}, {}, &top);
      const Value own = b.cast(indices.emit(indices_.result, scope), i64), size = context.dim(size_);
      const Value inside = b.index(0) <= own && own < size;
      // If there is nothing to add, the row is not used.
      b.check(inside || context.dim(around) <= 0, code);
      return b.select(inside, own, size) * chunk_ + place(t);
    };
    const auto block = [&](Value start) {
      const kernel::Buffer keys = b.alloc(i64, chunk_, kernel::Space::shared, "keys");
      const Value members = kernel::min(count - start, chunk_);
      const auto thread = [&](Value x) {
        b.for_loop(x, members, threads, [&](Value i) { b.store(keys, i, key_of(start + i)); });
        sort_keys(b, keys, members, x, threads);
        b.for_loop(x, members, threads, [&](Value i) {
          b.store(context.buffer(keys_), start + i, b.load(keys, i));
          if (one_chunk_) link(context, keys, i);
        });
      };
      b.for_loop(0, threads, 1, thread, LoopKind::thread_x);
    };
    b.for_loop(0, count, chunk_, block, LoopKind::block_x);
    return context.finish();
  }

  /// A bitonic sort: sorted halves are merged by ordering pairs, first mirrored ones, then those half as far apart,
  /// and so on. Positions past the members count as larger than all.
  void sort_keys(kernel::Builder& b, kernel::Buffer keys, Value members, Value x, int threads) const {
    Value levels = b.index(0);
    for (std::int64_t half = 1; half < chunk_; half *= 2) levels = levels + b.cast(b.index(half) < members, i64);
    b.for_loop(0, levels, 1, [&](Value level) {
      b.for_loop(0, level + 1, 1, [&](Value turn) {
        const Value distance = power(level - turn, chunk_ / 2);
        b.barrier();
        b.for_loop(x, kernel::min(members, chunk_ / 2), threads, [&](Value pair) {
          const Value inside = bits(pair, distance - 1), low = pair * 2 - inside;
          const Value high = low + b.select(equal(turn, 0), (distance - inside) * 2 - 1, distance);
          b.if_(high < members, [&] {
            const Value one = b.load(keys, low), other = b.load(keys, high);
            b.store(keys, low, kernel::min(one, other));
            b.store(keys, high, kernel::max(one, other));
          });
        });
      });
    });
    b.barrier();
  }

  KernelContext::Built link() {
    KernelContext context("link_indices", KernelRole::scatter_link);
    kernel::Builder& b = context.builder;
    context.declare(keys_, i64, true, false);
    declare_links(context);
    for_threads(b, context.dim(count_), 1, [&](Value slot) { link(context, context.buffer(keys_), slot); });
    return context.finish();
  }

  void declare_links(KernelContext& context) const {
    context.declare(lengths_, i32, false, true);
    context.declare(first_, boolean, false, true);
    if (!one_chunk_) context.declare(next_, i64, false, true);
  }

  /// For each slot where a run starts: stores the run's length, whether it is its row's first, and where the row's
  /// next run starts, or the count. An index out of range has no first run.
  void link(KernelContext& context, kernel::Buffer keys, Value slot) const {
    kernel::Builder& b = context.builder;
    const Value count = context.dim(count_), key = b.load(keys, slot), row = key - place(key);
    const Value start = slot - place(slot), end = kernel::min(start + chunk_, count);
    const Value begins = equal(slot, start) || b.load(keys, kernel::max(slot - 1, start)) < row;
    const kernel::Var length = b.var(b.index(0)), next = b.var(count),
                      first = b.var(begins && row < context.dim(size_) * chunk_);
    /// Returns where the row's run in another chunk starts, or the count.
    const auto run_in = [&](Value chunk) {
      const Value behind = kernel::min(chunk + chunk_, count), at = chunk + keys_below(b, keys, row, chunk, behind);
      const Value found = at < behind && b.load(keys, kernel::min(at, behind - 1)) < row + chunk_;
      return b.select(found, at, count);
    };
    b.if_(begins, [&] {
      b.set(length, keys_below(b, keys, row + chunk_, slot, end));
      if (one_chunk_) return;
      b.for_loop(start + chunk_, count, chunk_,
                 [&](Value later) { b.if_(equal(b.get(next), count), [&] { b.set(next, run_in(later)); }); });
      b.for_loop(0, start, chunk_,
                 [&](Value earlier) { b.if_(b.get(first), [&] { b.set(first, equal(run_in(earlier), count)); }); });
    });
    b.store(context.buffer(lengths_), slot, b.cast(b.get(length), i32));
    b.store(context.buffer(first_), slot, b.get(first));
    if (!one_chunk_) b.store(context.buffer(next_), slot, b.get(next));
  }

  /// Returns how many of the sorted keys in [start, end), at most a chunk, are less than `limit`.
  Value keys_below(kernel::Builder& b, kernel::Buffer keys, Value limit, Value start, Value end) const {
    const kernel::Var below = b.var(b.index(0));
    int digits = 1;
    for (std::int64_t half = chunk_; half > 1; half /= 2) ++digits;
    b.for_loop(0, digits, 1, [&](Value digit) {
      const Value more = kernel::min(b.get(below) + power(digits - 1 - digit, chunk_), chunk_), at = start + more;
      const Value less = at <= end && b.load(keys, kernel::min(at, end) - 1) < limit;
      b.set(below, b.select(less, more, b.get(below)));
    });
    return b.get(below);
  }

  /// One thread per slot and vector of columns; only those of first runs have work.
  KernelContext::Built add() {
    KernelContext context("scatter_add", KernelRole::scatter_add);
    kernel::Builder& b = context.builder;
    ElementwiseEmitter updates(context, updates_.program, lowering_.buffer_of);
    declare_buffers(context, {&updates_.program}, lowering_);
    context.declare(keys_, i64, true, false);
    context.declare(lengths_, i32, true, false);
    context.declare(first_, boolean, true, false);
    if (!one_chunk_) context.declare(next_, i64, true, false);
    context.declare(out_, node_.type.dtype, false, true);
    Scope top(updates, {});
    const Dim width = updates_.program.points(post_);
    const Value columns = context.dim(width), count = context.dim(count_), across = b.ceil_div(columns, lanes_);
    for_threads(b, context.dim(updates_.program.points(pre_)) * count * across, 1, [&](Value i) {
      const Value column = i % across * lanes_, slot = i / across % count, pre = i / across / count;
      b.if_(b.load(context.buffer(first_), slot), [&] {
        unmasked_or_masked(b, column, columns, lanes_, width, [&](Value mask) {
          const Value sum = add_runs(context, updates, pre, slot, column, mask, top);
          const Value row = pre * context.dim(size_) + b.load(context.buffer(keys_), slot) / chunk_;
          b.store(context.buffer(out_), row * columns + column, b.cast(sum, node_.type.dtype), mask);
        });
      });
    });
    auto built = context.finish();
    built.launch.flops = updates_.program.domain.numel();
    return built;
  }

  /// Returns the sum of the updates of a row whose first run starts at `slot`.
  Value add_runs(KernelContext& context, ElementwiseEmitter& updates, Value pre, Value slot, Value column, Value mask,
                 Scope& top) const {
    kernel::Builder& b = context.builder;
    const Value count = context.dim(count_);
    const Value zeros = b.constant(compute_type(node_.type.dtype), 0, lanes_);
    std::optional<BlockTotal> total;
    if (adds_in_blocks(ScalarOp::add, zeros.type.scalar, count_.value())) total.emplace(b, ScalarOp::add, zeros);
    const kernel::Var sum = b.var(zeros);
    const auto end_of_block = [&] {
      total->add(b.get(sum));
      b.set(sum, zeros);
    };
    const auto all = [&] { return total ? total->get() : b.get(sum); };
    const auto add_run = [&](Value run) {
      const Value length = kernel::max(kernel::min(b.cast(b.load(context.buffer(lengths_), run), i64), chunk_), 0);
      const auto add = [&](Value i) {
        const Value t = run - place(run) + place(b.load(context.buffer(keys_), run + i));
        Scope scope(updates, {{pre_, pre, 1}, {index_, t, 1}, {post_, column, lanes_}}, mask, &top);
        b.set(sum, b.get(sum) + b.broadcast(updates.emit(updates_.result, scope), lanes_));
      };
      if (total)
        for_blocks(b, 0, length, 1, add, end_of_block);
      else
        b.for_loop(0, length, 1, add);
    };
    if (one_chunk_) {
      add_run(slot);
      return all();
    }
    const kernel::Var at = b.var(slot);
    b.for_loop(slot - place(slot), count, chunk_, [&](Value) {
      b.if_(b.get(at) < count, [&] {
        const Value run = b.get(at);
        add_run(run);
        // It is in this range, as the length is; the explicit bounds show that it fits into 32 bits.
        b.set(at, kernel::min(kernel::max(b.load(context.buffer(next_), run), b.index(0)), count));
      });
    });
    return all();
  }

  const GpuContext& lowering_;
  const ir::Node& node_;
  int out_;
  std::int64_t chunk_;  ///< positions that a block sorts
  bool one_chunk_ = false;
  int keys_ = -1, lengths_ = -1, first_ = -1, next_ = -1;  ///< by slot; the slots of a chunk are its positions
  OperandProgram updates_, indices_;
  std::vector<int> pre_, index_, post_;
  Dim size_ = 0, count_ = 0;
  int lanes_ = 1;
};

}  // namespace

std::vector<KernelContext::Built> lower_scatter(const GpuContext& context, const Region& region) {
  return ScatterKernels(context, region.members[0]).run();
}

}  // namespace lathe::gpu
