#include "passes/gpu/attention/attention_online.h"

#include <limits>

#include "ir/kernel/intrinsics/fast_math.h"

namespace lathe::gpu {

using kernel::Value;
using Scope = AttentionBlock::Scope;
using Scopes = AttentionBlock::Scopes;

namespace {
Value is_lowest(Value most) { return equal(most, -std::numeric_limits<double>::infinity()); }
}  // namespace

RisingMaximum::Raised RisingMaximum::raise(kernel::Builder& b, Value here, bool approximate) const {
  const Value before = b.get(most), now = max(before, here);
  const Value subtracted = b.select(is_lowest(now), b.constant(now.type.scalar, 0), now);
  b.set(most, now);
  const Value fall = before - subtracted;
  return {subtracted,
          approximate && fall.type.scalar == f32 ? kernel::fast_exp(b, fall) : b.apply(ScalarOp::exp, {fall})};
}

Value RisingMaximum::end(kernel::Builder& b, const OnlineSoftmax& softmax, Value column_count) const {
  const Value now = b.get(most), one = b.constant(now.type.scalar, 1);
  if (softmax.zero_masked) return one;
  return b.select(is_lowest(now) && column_count > 0, now - now, one);
}

OnlineLoop::OnlineLoop(const AttentionPlan& plan, AttentionBlock& block)
    : plan_(plan), online_(*plan.online), block_(block), b_(block.b), own_(plan.tile.own()) {
  for (const AttentionParts::Score& score : plan.attention.parts.scores) scores_.push_back(score.value);
  for (auto& sum : block.sums) products_.push_back(sum.get());
}

void OnlineLoop::run(Scopes& rows, const ScorePosition& first, Value end, const AttentionThread& thread) {
  const ElementwiseProgram& program = block_.program;
  const auto start = [&](int reduction, int lanes) {
    const ElementwiseInstruction& i = program[reduction];
    return b_.var({compute_type(i.dtype), lanes}, b_.broadcast(reduction_identity(b_, i), lanes));
  };
  rows_.clear();
  for (auto& row : rows) {
    for (const int i : plan_.row_blocks.loops()[0].fixed) block_.emitter.emit(i, *row);
    rows_.push_back({{start(online_.most, 1)}, {}});
    for (const int sum : online_.sums) rows_.back().sums.push_back(start(sum, own_));
  }
  const int span = plan_.tile.span();
  b_.for_loop(first.column, end, span, [&](Value column) {
    const ScorePosition here{first.outer, first.row, column}, next{first.outer, first.row, column + span};
    block_.start(scores_, products_, here, AttentionSteps::Next{next, next.column < end}, thread);
    tile(rows, here, thread);
  });
  finish(rows, thread);
}

Value OnlineLoop::raise(Row& row, Scope& point, const AttentionThread& thread) {
  const ElementwiseInstruction& most = block_.program[online_.most];
  Value values = b_.broadcast(block_.emitter.emit(most.args[0], point), own_);
  if (point.mask) values = b_.select(point.mask, values, b_.broadcast(reduction_identity(b_, most), own_));
  const Value here = block_.reduce_row(most.op, b_.reduce(most.op, values), thread);
  const auto [subtracted, factor] = row.maximum.raise(b_, here);
  point.bind(online_.most, subtracted);
  return factor;
}

void OnlineLoop::tile(Scopes& of_rows, const ScorePosition& here, const AttentionThread& thread) {
  const ElementwiseProgram& program = block_.program;
  Scopes points = block_.points(of_rows, here, scores_, thread);
  std::vector<Value> factors;
  for (std::size_t r = 0; r < points.size(); ++r) {
    Row& row = rows_[r];
    factors.push_back(raise(row, *points[r], thread));
    for (std::size_t s = 0; s < row.sums.size(); ++s) {
      Value value = b_.broadcast(block_.emitter.emit(program[online_.sums[s]].args[0], *points[r]), own_);
      if (points[r]->mask) value = b_.select(points[r]->mask, value, b_.constant(value.type.scalar, 0, own_));
      const Value factor = b_.broadcast(b_.cast(factors[r], value.type.scalar), own_);
      b_.set(row.sums[s], b_.get(row.sums[s]) * factor + value);
    }
    for (const AttentionSums* product : products_) block_.emitter.emit(product->part().value, *points[r]);
  }
  block_.scale(products_, ScalarOp::mul, factors, thread);
  for (AttentionSums* product : products_) block_.add(*product, of_rows, points, thread);
}

void OnlineLoop::finish(Scopes& of_rows, const AttentionThread& thread) {
  const ElementwiseProgram& program = block_.program;
  std::vector<Value> scales;
  for (std::size_t r = 0; r < of_rows.size(); ++r) {
    of_rows[r]->bind(online_.most, b_.get(rows_[r].maximum.most));
    scales.push_back(rows_[r].maximum.end(b_, online_, block_.column_count));
    for (std::size_t s = 0; s < online_.sums.size(); ++s) {
      const ElementwiseInstruction& sum = program[online_.sums[s]];
      const Value own = b_.reduce(sum.op, b_.get(rows_[r].sums[s]));
      const Value combined = block_.reduce_row(sum.op, own, thread);
      of_rows[r]->bind(online_.sums[s],
                       block_.emitter.round(combined * b_.cast(scales[r], combined.type.scalar), sum.dtype));
    }
  }
  block_.scale(products_, ScalarOp::mul, scales, thread);
}

}  // namespace lathe::gpu
