#include "ir/ops/rules.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

using kernel::Value;
using Scope = PointEmitter::Scope;

namespace {

constexpr int vectors = 4;

/// out[pre, size, post] = sum over t of updates[pre, t, post] where indices[t] names the row. The domain is the
/// updates' own dims; t runs over those of the indices, in order.
class ScatterKernel {
 public:
  ScatterKernel(const LoweringContext& lowering, ir::ValueId id)
      : lowering_(lowering), context_("scatter_add"), b_(context_.builder), node_(lowering.graph[id]) {
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
    out_ = lowering.buffer_of(id);
    context_.declare(out_, node_.type.dtype, true, true);
    context_.touches({{out_, node_.type.shape.numel().unnamed()}});
    lanes_ = post_.empty() ? 1 : program_lanes(updates_.program, lowering.target);
  }

  KernelContext::Built run() {
    PointEmitter updates(context_, updates_.program, lowering_.buffer_of);
    PointEmitter indices(context_, indices_.program, lowering_.buffer_of);
    const Shape& domain = updates_.program.domain;
    const Value columns = context_.dim(updates_.program.points(post_));
    const Value blocks = b_.ceil_div(columns, vectors * lanes_);
    b_.parallel_for(0, context_.dim(updates_.program.points(pre_)) * blocks, 1, [&](Value i) {
      const Value pre = i / blocks, lo = i % blocks * (vectors * lanes_);
      const Value hi = kernel::min(lo + vectors * lanes_, columns);
      clear(pre, lo, hi, columns);
      add(updates, indices, pre, lo, hi, columns);
    });
    auto built = context_.finish();
    built.launch.work = (updates_.program.points(index_) + node_.type.shape[dim_].unnamed()) * Dim(vectors * lanes_);
    built.launch.flops = domain.numel();
    return built;
  }

 private:
  Value row_start(Value pre, Value row, Value columns) {
    return (pre * context_.dim(node_.type.shape[dim_]) + row) * columns;
  }

  void clear(Value pre, Value lo, Value hi, Value columns) {
    const Value size = context_.dim(node_.type.shape[dim_]);
    b_.for_loop(0, size, 1, [&](Value row) {
      const Value start = row_start(pre, row, columns);
      vector_loop(b_, lo, hi, lanes_, [&](Value at, Value mask) {
        const Value zero = b_.cast(b_.constant(compute_type(node_.type.dtype), 0, lanes_), node_.type.dtype);
        b_.store(context_.buffer(out_), start + at, zero, mask);
      });
    });
  }

  void add(PointEmitter& updates, PointEmitter& indices, Value pre, Value lo, Value hi, Value columns) {
    const Dim size = node_.type.shape[dim_].unnamed();
    const std::int64_t code = context_.check_code("an index is not in [0, " + size.to_string() + ")");
    const kernel::Buffer out = context_.buffer(out_);
    b_.for_loop(0, context_.dim(updates_.program.points(index_)), 1, [&](Value t) {
      Scope index_scope(indices, {{index_, t, 1}});
      const Value row = b_.cast(indices.emit(indices_.result, index_scope), i64);
      const Value inside = b_.index(0) <= row && row < context_.dim(size);
      b_.check(inside, code);
      b_.if_(inside, [&] {
        const Value start = row_start(pre, row, columns);
        vector_loop(b_, lo, hi, lanes_, [&](Value at, Value mask) {
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
  int dim_ = 0, lanes_ = 1, out_ = -1;
};

}  // namespace

KernelContext::Built lower_scatter(const LoweringContext& context, const Region& region) {
  return ScatterKernel(context, region.members[0]).run();
}

}  // namespace lathe
