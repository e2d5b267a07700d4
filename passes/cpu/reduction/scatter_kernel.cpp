#include <algorithm>
#include <optional>

#include "ir/ops/rules/operand_rules.h"
#include "passes/cpu/cpu_kernels.h"
#include "passes/lowering/block_sums.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// out[pre, size, post] = base + the sum over t of updates[pre, t, post] with indices[t] == row. base is zero, or the
/// current contents of the output. The domain has the dims of the updates; t runs over those of the indices.
/// scatter_positions finds the updates of a row, which are added in order, in registers. Sums are therefore the same
/// for any number of threads, and each row is written once. If base is zero, all rows are computed; otherwise only
/// rows with updates, each by the task of its first update.
class ScatterKernel {
 public:
  ScatterKernel(const CpuContext& lowering, const Region& region)
      : lowering_(lowering),
        context_("scatter_add", KernelRole::scatter_add),
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
    positions_ = lowering.workspace(i64, scatter_positions_size(graph, region.members[0]), "positions");
    std::vector<const ElementwiseProgram*> programs = {&updates_.program};
    if (!clears_) programs.push_back(&indices_.program);
    declare_buffers(context_, programs, lowering);
    context_.declare(positions_, i64, true, false);
    out_ = lowering.buffer_of(region.members.back());
    context_.declare(out_, node_.type.dtype, !clears_, true);
    if (!clears_) context_.writes_part_of(out_);
    const Dim added = updates_.program.points(all);
    context_.touches({{out_, clears_ ? node_.type.shape.numel().unnamed() : added + added}});
    lanes_ = post_.empty() ? 1 : program_lanes(updates_.program, lowering.vectors());
    const auto columns = updates_.program.points(post_).value();
    column_blocks_ = columns ? std::max<std::int64_t>((*columns + width() - 1) / width(), 1) : 1;
    choose_prefetch();
  }

  std::vector<KernelContext::Built> run(ir::ValueId scatter) {
    std::vector<KernelContext::Built> built;
    built.push_back(scatter_positions(lowering_, scatter, positions_));
    built.push_back(sums());
    return built;
  }

 private:
  Dim rows() const { return node_.type.shape[dim_].unnamed(); }
  Dim count() const { return updates_.program.points(index_); }
  std::int64_t width() const { return lowering_.tuned.loops.scatter_task_vectors * lanes_; }

  KernelContext::Built sums() {
    ElementwiseEmitter updates(context_, updates_.program, lowering_.buffer_of);
    ElementwiseEmitter indices(context_, indices_.program, lowering_.buffer_of);
    const Dim pre = updates_.program.points(pre_), turns = clears_ ? rows() : count();
    const kernel::Buffer positions = context_.buffer(positions_);
    b_.parallel_for(0, context_.dim(pre * turns * Dim(column_blocks_)), 1, [&](Value i) {
      const Value column_block = i % column_blocks_, remainder = i / column_blocks_,
                  turn = pre.is(1) ? remainder : remainder % context_.dim(turns);
      const Value outer = pre.is(1) ? b_.index(0) : remainder / context_.dim(turns);
      if (clears_) return sum_row(updates, outer, turn, column_block);
      Scope scope(indices, {{index_, turn, 1}});
      const Value row = b_.cast(indices.emit(indices_.result, scope), i64);
      // scatter_positions has reported the error.
      b_.if_(b_.index(0) <= row && row < context_.dim(rows()), [&] {
        const Value first = b_.load(positions, context_.dim(start_of_positions(node_)) + b_.load(positions, row));
        b_.if_(equal(first, turn), [&] { sum_row(updates, outer, row, column_block); });
      });
    });
    auto built = context_.finish();
    const auto columns = updates_.program.points(post_).value();
    built.launch.work = Dim(std::min(columns.value_or(width()), width()) * 2);
    built.launch.flops = updates_.program.domain.numel();
    return built;
  }

  /// Sums all updates of a row for one block of columns.
  void sum_row(ElementwiseEmitter& updates, Value pre, Value row, Value column_block) {
    const Value columns = context_.dim(updates_.program.points(post_));
    const Value lo = column_block * width(), hi = column_blocks_ == 1 ? columns : kernel::min(lo + width(), columns);
    const Value start = (pre * context_.dim(rows()) + row) * columns;
    const Value later = prefetched_ ? later_update(row) : row;
    const auto body = [&](Value at, Value mask, std::int64_t vectors) {
      for (std::int64_t v = 0; prefetched_ && v < vectors; ++v) {
        Scope scope(updates, {{pre_, pre, 1}, {index_, later, 1}, {post_, at + v * lanes_, lanes_}});
        updates.prefetch(*prefetched_, scope);
      }
      sum_columns(updates, pre, row, start, at, mask, vectors);
    };
    const int most_sums = lowering_.tuned.loops.scatter_vectors;
    const std::int64_t together = std::int64_t{most_sums} * lanes_;
    const Value whole = hi - (hi - lo) % together;
    b_.for_loop(lo, whole, together, [&](Value at) { body(at, {}, most_sums); });
    vector_loop(b_, whole, hi, lanes_, [&](Value at, Value mask) { body(at, mask, 1); });
  }

  void sum_columns(ElementwiseEmitter& updates, Value pre, Value row, Value start, Value column, Value mask,
                   std::int64_t vectors) {
    const kernel::Buffer out = context_.buffer(out_), positions = context_.buffer(positions_);
    const DType compute = compute_type(node_.type.dtype);
    std::vector<kernel::Var> sums;
    for (std::int64_t v = 0; v < vectors; ++v) {
      const Value base = clears_ ? b_.constant(compute, 0, lanes_)
                                 : b_.cast(b_.load(out, start + column + v * lanes_, lanes_, mask), compute);
      sums.push_back(b_.var(base));
    }
    const Value order = context_.dim(start_of_positions(node_));
    const auto add = [&](Value listed) {
      const Value t = b_.load(positions, order + listed);
      for (std::int64_t v = 0; v < vectors; ++v) {
        Scope scope(updates, {{pre_, pre, 1}, {index_, t, 1}, {post_, column + v * lanes_, lanes_}}, mask);
        const kernel::Var sum = sums[v];
        b_.set(sum, b_.get(sum) + b_.broadcast(updates.emit(updates_.result, scope), lanes_));
      }
    };
    // Most rows have few updates, all in the first block.
    const bool blocks = adds_in_blocks(ScalarOp::add, compute, count().value());
    const Value begin = b_.load(positions, row), end = b_.load(positions, row + 1),
                first_end = blocks ? kernel::min(begin + block_terms, end) : end;
    b_.for_loop(begin, first_end, 1, add);
    if (blocks)
      b_.if_(first_end < end, [&] {
        std::vector<BlockTotal> totals;
        const auto next_block = [&] {
          for (std::size_t v = 0; v < sums.size(); ++v) {
            totals[v].add(b_.get(sums[v]));
            b_.set(sums[v], b_.constant(compute, 0, lanes_));
          }
        };
        for (std::size_t v = 0; v < sums.size(); ++v)
          totals.emplace_back(b_, ScalarOp::add, b_.constant(compute, 0, lanes_));
        next_block();
        for_blocks(b_, first_end, end, 1, add, next_block);
        for (std::size_t v = 0; v < sums.size(); ++v) b_.set(sums[v], totals[v].get());
      });
    const bool streams = clears_ && !mask && outgrows_caches(node_.type, lowering_.cpu);
    for (std::int64_t v = 0; v < vectors; ++v) {
      const Value sum = b_.cast(b_.get(sums[v]), node_.type.dtype);
      const Value at = start + column + v * lanes_;
      streams ? b_.stream(out, at, sum) : b_.store(out, at, sum, mask);
    }
  }

  /// Selects the load of the updates to prefetch. Their order is not predictable for the hardware prefetcher.
  void choose_prefetch() {
    const ElementwiseInstruction& result = updates_.program[updates_.result];
    if (clears_ && result.kind == ElementwiseInstruction::Kind::load && result.args.empty() && !post_.empty())
      prefetched_ = updates_.result;
  }

  /// Returns an update of a later row, or any update if that row has none.
  Value later_update(Value row) {
    const kernel::Buffer positions = context_.buffer(positions_);
    const Value last = context_.dim(count()) - 1;
    const Value listed =
        b_.load(positions, kernel::min(row + lowering_.tuned.loops.scattered_rows_ahead, context_.dim(rows())));
    return b_.load(positions, context_.dim(start_of_positions(node_)) + kernel::min(listed, last));
  }

  const CpuContext& lowering_;
  KernelContext context_;
  kernel::Builder& b_;
  const ir::Node& node_;
  OperandProgram updates_, indices_;
  std::vector<int> pre_, index_, post_;
  bool clears_;
  int dim_ = 0, lanes_ = 1, out_ = -1, positions_ = -1;
  std::int64_t column_blocks_ = 1;
  std::optional<int> prefetched_;  ///< the load to prefetch
};

}  // namespace

std::vector<KernelContext::Built> lower_scatter(const CpuContext& context, const Region& region) {
  return ScatterKernel(context, region).run(region.members[0]);
}

}  // namespace lathe::cpu
