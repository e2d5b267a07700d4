#include <algorithm>

#include "ir/ops/rules.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

using kernel::Value;
using Scope = PointEmitter::Scope;

namespace {

constexpr std::int64_t most_tasks = 32;
constexpr std::int64_t columns_for_a_task = 16;  // to read all indices is to cost less than to add the updates
constexpr std::int64_t block_rows = 8;

/// out[pre, size, post] = base + the sum over t of updates[pre, t, post] where indices[t] names the row; base is
/// zero, or lies there already. The domain is the updates' own dims; t runs over those of the indices. Blocks of rows
/// go to tasks by turns, and each task reads all indices in order: so sums are the same on any number of threads, and
/// rows that come up often are spread.
class ScatterKernel {
 public:
  ScatterKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        context_("scatter_add"),
        b_(context_.builder),
        node_(lowering.graph[region.members[0]]),
        clears_(region.members.size() == 1) {
    const ir::Graph& graph = lowering.graph;
    const Shape& updates = graph[node_.operands[1]].type.shape;
    const int index_rank = graph[node_.operands[0]].type.rank();
    dim_ = ir::rules::normalize_axis(node_.attrs.get<std::int64_t>("dim"), node_.type.rank());
    for (int d = 0; d < updates.rank(); ++d) (d < dim_ ? pre_ : d < dim_ + index_rank ? index_ : post_).push_back(d);
    std::vector<int> all(pre_);
    all.insert(all.end(), index_.begin(), index_.end());
    all.insert(all.end(), post_.begin(), post_.end());
    updates_ = operand_program(graph, lowering.plan, node_.operands[1], all, updates);
    indices_ = operand_program(graph, lowering.plan, node_.operands[0], index_, updates);
    declare_buffers(context_, {&updates_.program, &indices_.program}, lowering);
    out_ = lowering.buffer_of(region.members.back());
    context_.declare(out_, node_.type.dtype, true, true);
    const Dim added = updates_.program.points(all);
    context_.touches({{out_, clears_ ? node_.type.shape.numel().unnamed() : added + added}});
    lanes_ = post_.empty() ? 1 : program_lanes(updates_.program, lowering.target);
    const auto columns = updates_.program.points(post_).value();
    tasks_ = std::clamp<std::int64_t>(columns.value_or(128) / columns_for_a_task, 1, most_tasks);
  }

  KernelContext::Built run() {
    PointEmitter updates(context_, updates_.program, lowering_.buffer_of);
    PointEmitter indices(context_, indices_.program, lowering_.buffer_of);
    const Shape& domain = updates_.program.domain;
    const Value columns = context_.dim(updates_.program.points(post_));
    b_.parallel_for(0, context_.dim(updates_.program.points(pre_)) * tasks_, 1, [&](Value i) {
      const Value pre = i / tasks_, task = i % tasks_;
      if (clears_) clear(pre, task, columns);
      add(updates, indices, pre, task, columns);
    });
    auto built = context_.finish();
    const auto known = updates_.program.points(post_).value();
    const Dim share = known ? Dim(std::max<std::int64_t>(*known / tasks_, 1)) : updates_.program.points(post_);
    built.launch.work = (updates_.program.points(index_) + (clears_ ? rows() : Dim(0))) * share;
    built.launch.flops = domain.numel();
    return built;
  }

 private:
  Dim rows() const { return node_.type.shape[dim_].unnamed(); }
  Value row_start(Value pre, Value row, Value columns) { return (pre * context_.dim(rows()) + row) * columns; }

  /// Zeros in the task's blocks of rows.
  void clear(Value pre, Value task, Value columns) {
    const Value size = context_.dim(rows());
    const bool streams = outgrows_caches(node_.type);
    b_.for_loop(task * block_rows, size, tasks_ * block_rows, [&](Value first) {
      const Value lo = row_start(pre, first, columns);
      const Value hi = row_start(pre, kernel::min(first + block_rows, size), columns);
      vector_loop(b_, lo, hi, lanes_, [&](Value at, Value mask) {
        const Value zero = b_.cast(b_.constant(compute_type(node_.type.dtype), 0, lanes_), node_.type.dtype);
        streams && !mask ? b_.stream(context_.buffer(out_), at, zero)
                         : b_.store(context_.buffer(out_), at, zero, mask);
      });
    });
  }

  void add(PointEmitter& updates, PointEmitter& indices, Value pre, Value task, Value columns) {
    const Dim size = rows();
    const std::int64_t code = context_.check_code("an index is not in [0, " + size.to_string() + ")");
    const kernel::Buffer out = context_.buffer(out_);
    b_.for_loop(0, context_.dim(updates_.program.points(index_)), 1, [&](Value t) {
      Scope index_scope(indices, {{index_, t, 1}});
      const Value row = b_.cast(indices.emit(indices_.result, index_scope), i64);
      const Value inside = b_.index(0) <= row && row < context_.dim(size);
      b_.check(inside, code);
      const Value mine = tasks_ == 1 ? inside : inside && equal(row / block_rows % tasks_, task);
      b_.if_(mine, [&] {
        const Value start = row_start(pre, row, columns);
        vector_loop(b_, b_.index(0), columns, lanes_, [&](Value at, Value mask) {
          Scope scope(updates, {{pre_, pre, 1}, {index_, t, 1}, {post_, at, lanes_}}, mask);
          const Value update = b_.broadcast(updates.emit(updates_.result, scope), lanes_);
          const DType compute = compute_type(node_.type.dtype);
          const Value sum = b_.cast(b_.load(out, start + at, lanes_, mask), compute) + update;
          b_.store(out, start + at, b_.cast(sum, node_.type.dtype), mask);
        });
      });
    });
  }

  const LoweringContext& lowering_;
  KernelContext context_;
  kernel::Builder& b_;
  const ir::Node& node_;
  OperandProgram updates_, indices_;
  std::vector<int> pre_, index_, post_;
  bool clears_;
  int dim_ = 0, lanes_ = 1, out_ = -1;
  std::int64_t tasks_ = 1;
};

}  // namespace

KernelContext::Built lower_scatter(const LoweringContext& context, const Region& region) {
  return ScatterKernel(context, region).run();
}

}  // namespace lathe
