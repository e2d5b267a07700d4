#include "ir/ops/rules/operand_rules.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

constexpr std::int64_t stretch = 256;  // positions searched between two looks at whether there is more to find

/// out[pre, size, post] = sum over t of updates[pre, t, post] where indices[t] names the row.
class ScatterKernels {
 public:
  ScatterKernels(const LoweringContext& lowering, ir::ValueId id)
      : lowering_(lowering), node_(lowering.graph[id]), out_(lowering.buffer_of(id)) {
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
    lanes_ = post_.empty() ? 1 : program_lanes(updates_.program, lowering.vectors());
    next_ = lowering.workspace(i64, count_, "next equal index");
    first_ = lowering.workspace(boolean, count_, "first of equal indices");
  }

  std::vector<KernelContext::Built> run() {
    std::vector<KernelContext::Built> built;
    built.push_back(clear());
    built.push_back(link());
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
    for_threads(b, lowering_.gpu(), n, lanes, [&](Value at) {
      const Value zero = b.cast(b.constant(compute_type(node_.type.dtype), 0, lanes), node_.type.dtype);
      unmasked_or_masked(b, at, n, lanes, elements,
                         [&](Value mask) { b.store(context.buffer(out_), at, zero, mask); });
    });
    return context.finish();
  }

  Value index_at(ElementwiseEmitter& indices, Value t, Scope& top) const {
    Scope scope(indices, {{index_, t, 1}}, {}, &top);
    return indices.context().builder.cast(indices.emit(indices_.result, scope), i64);
  }

  /// next[t] is the next position with the same index, or their count; first[t] says whether there is none before.
  /// An index out of range is no position's first.
  KernelContext::Built link() {
    KernelContext context("link_indices", KernelRole::scatter_link);
    kernel::Builder& b = context.builder;
    ElementwiseEmitter indices(context, indices_.program, lowering_.buffer_of);
    declare_buffers(context, {&indices_.program}, lowering_);
    context.declare(next_, i64, false, true);
    context.declare(first_, boolean, false, true);
    const std::int64_t code = context.check_code("an index is not in [0, " + size_.to_string() + ")");
    Scope top(indices, {});
    const Value count = context.dim(count_);
    const Dim around = updates_.program.points(pre_) * updates_.program.points(post_);
    for_threads(b, lowering_.gpu(), count, 1, [&](Value t) {
      const Value own = index_at(indices, t, top);
      const Value inside = b.index(0) <= own && own < context.dim(size_);
      // Where there is nothing to add, nobody asks for the row.
      b.check(inside || context.dim(around) <= 0, code);
      const kernel::Var next = b.var(count), before = b.var(b.constant_int(boolean, 0));
      search(
          b, t + 1, count, [&] { return equal(b.get(next), count); },
          [&](Value s) {
            const Value hit = equal(index_at(indices, s, top), own) && equal(b.get(next), count);
            b.set(next, b.select(hit, s, b.get(next)));
          });
      search(
          b, b.index(0), t, [&] { return kernel::logical_not(b.get(before)); },
          [&](Value s) { b.set(before, b.get(before) || equal(index_at(indices, s, top), own)); });
      b.store(context.buffer(next_), t, b.get(next));
      b.store(context.buffer(first_), t, inside && kernel::logical_not(b.get(before)));
    });
    return context.finish();
  }

  /// body(s) for s in lo..hi, a stretch at a time while `wanted()`.
  static void search(kernel::Builder& b, Value lo, Value hi, const std::function<Value()>& wanted,
                     const std::function<void(Value)>& body) {
    b.for_loop(lo, hi, stretch, [&](Value start) {
      b.if_(wanted(), [&] { b.for_loop(start, kernel::min(start + stretch, hi), 1, body); });
    });
  }

  /// A thread for each position and vector of columns; only those of first positions have work.
  KernelContext::Built add() {
    KernelContext context("scatter_add", KernelRole::scatter_add);
    kernel::Builder& b = context.builder;
    ElementwiseEmitter updates(context, updates_.program, lowering_.buffer_of);
    ElementwiseEmitter indices(context, indices_.program, lowering_.buffer_of);
    declare_buffers(context, {&updates_.program, &indices_.program}, lowering_);
    context.declare(next_, i64, true, false);
    context.declare(first_, boolean, true, false);
    context.declare(out_, node_.type.dtype, false, true);
    Scope top(updates, {}), indices_top(indices, {});
    const Dim width = updates_.program.points(post_);
    const Value columns = context.dim(width), count = context.dim(count_), across = b.ceil_div(columns, lanes_);
    for_threads(b, lowering_.gpu(), context.dim(updates_.program.points(pre_)) * count * across, 1, [&](Value i) {
      const Value column = i % across * lanes_, t = i / across % count, pre = i / across / count;
      b.if_(b.load(context.buffer(first_), t), [&] {
        unmasked_or_masked(b, column, columns, lanes_, width, [&](Value mask) {
          const Value sum = chain(context, updates, pre, t, count, column, mask, top);
          const Value row = pre * context.dim(size_) + index_at(indices, t, indices_top);
          b.store(context.buffer(out_), row * columns + column, b.cast(sum, node_.type.dtype), mask);
        });
      });
    });
    auto built = context.finish();
    built.launch.flops = updates_.program.domain.numel();
    return built;
  }

  /// The sum of the updates at t, next[t], next[next[t]], ...
  Value chain(KernelContext& context, ElementwiseEmitter& updates, Value pre, Value t, Value count, Value column,
              Value mask, Scope& top) const {
    kernel::Builder& b = context.builder;
    const kernel::Var at = b.var(t), sum = b.var(b.constant(compute_type(node_.type.dtype), 0, lanes_));
    search(
        b, t, count, [&] { return b.get(at) < count; },
        [&](Value) {
          b.if_(b.get(at) < count, [&] {
            const Value here = b.get(at);
            Scope scope(updates, {{pre_, pre, 1}, {index_, here, 1}, {post_, column, lanes_}}, mask, &top);
            b.set(sum, b.get(sum) + b.broadcast(updates.emit(updates_.result, scope), lanes_));
            // It is one of them or the end: said, so that 32 bits are known to hold it.
            b.set(at, kernel::min(kernel::max(b.load(context.buffer(next_), here), b.index(0)), count));
          });
        });
    return b.get(sum);
  }

  const LoweringContext& lowering_;
  const ir::Node& node_;
  int out_, next_ = -1, first_ = -1;
  OperandProgram updates_, indices_;
  std::vector<int> pre_, index_, post_;
  Dim size_ = 0, count_ = 0;
  int lanes_ = 1;
};

}  // namespace

std::vector<KernelContext::Built> lower_scatter(const LoweringContext& context, const Region& region) {
  return ScatterKernels(context, region.members[0]).run();
}

}  // namespace lathe::gpu
