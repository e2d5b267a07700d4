#include "passes/gpu/attention/wgmma/wgmma_softmax.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Kind = ElementwiseInstruction::Kind;

WgmmaSoftmax::WgmmaSoftmax(const AttentionPlan& plan, KernelContext& context, ElementwiseEmitter& emitter,
                           int columns)
    : plan_(plan),
      online_(*plan.online),
      context_(context),
      b_(context.builder),
      emitter_(emitter),
      program_(emitter.program()),
      columns_(columns),
      score_(plan.attention.parts.scores[0].value),
      result_(plan.attention.parts.outputs[0].value) {}

WgmmaSoftmax::Scopes WgmmaSoftmax::rows(Value outer, Value first, Value thread, const Scope* top) {
  const AttentionParts& parts = plan_.attention.parts;
  const Value count = context_.dim(plan_.attention.rows);
  Scopes scopes;
  for (int r = 0; r < rows_of_thread; ++r) {
    const Value row = first + first_row(thread) + r * row_step;
    scopes.push_back(std::make_unique<Scope>(
        emitter_, std::vector<IndexGroup>{{parts.outer, outer, 1}, {{parts.row_dim}, min(row, count - 1), 1}},
        row < count, top));
    for (const int i : plan_.row_blocks.loops()[0].fixed) emitter_.emit(i, *scopes.back());
  }
  return scopes;
}

void WgmmaSoftmax::begin(Scopes& rows) {
  const auto start = [&](int reduction, int lanes) {
    const ElementwiseInstruction& i = program_[reduction];
    return b_.var({compute_type(i.dtype), lanes}, b_.broadcast(reduction_identity(b_, i), lanes));
  };
  rows_.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows_.push_back({{start(online_.most, 1)}, {}});
    for (const int sum : online_.sums) rows_.back().sums.push_back(start(sum, pair));
  }
}

/// Whether the tile's columns exist and no comparison excludes one of them for any row of the warpgroup.
Value WgmmaSoftmax::all_inside(const ScorePosition& tile, Value thread) {
  const ColumnBounds& bounds = plan_.attention.bounds;
  const Value end = tile.column + columns_, all = end <= context_.dim(plan_.attention.column_count);
  if (bounds.inside.empty()) return all;
  const Value first_row_of_warpgroup = tile.row + thread / kernel::warpgroup_threads * kernel::wgmma_rows;
  return all && end - 1 <= first_row_of_warpgroup + context_.dim(*bounds.upper);
}

void WgmmaSoftmax::each_pair(Scopes& rows, const ScorePosition& tile, Value thread, const Body& body) {
  b_.if_(
      all_inside(tile, thread), [&] { each_pair(rows, tile, thread, true, body); },
      [&] { each_pair(rows, tile, thread, false, body); });
}

void WgmmaSoftmax::each_pair(Scopes& rows, const ScorePosition& tile, Value thread, bool whole, const Body& body) {
  const AttentionParts& parts = plan_.attention.parts;
  const Value count = context_.dim(plan_.attention.column_count);
  const auto known = plan_.attention.column_count.value();
  const bool unmasked = whole || (known && *known % columns_ == 0);
  const auto pairs = [&](Value i) {
    const Value column = tile.column + i * row_step + first_column(thread);
    const Value inside = unmasked ? Value{} : b_.tail_mask(count - column, pair);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Value row =
          min(tile.row + first_row(thread) + static_cast<int>(r) * row_step, context_.dim(plan_.attention.rows) - 1);
      Scope point(emitter_,
                  {{parts.outer, tile.outer, 1}, {{parts.row_dim}, row, 1}, {{parts.columns_dim}, column, pair}},
                  inside, rows[r].get());
      if (whole)
        for (const auto& [comparison, holds] : plan_.attention.bounds.inside)
          point.bind(comparison, b_.constant_int(boolean, holds));
      body(r, point, element(i, r));
    }
  };
  b_.for_loop(0, columns_ / row_step, 1, pairs, LoopKind::unroll);
}

Value WgmmaSoftmax::masked(const Scope& point, Value value, Value otherwise) {
  value = b_.broadcast(value, pair);
  return point.mask ? b_.select(point.mask, value, b_.broadcast(otherwise, pair)) : value;
}

/// Reduces over the threads of a row.
Value WgmmaSoftmax::reduce(ScalarOp op, Value own, Value thread) {
  return reduce_in_warp(b_, op, own, thread % kernel::warp_threads, threads_of_row);
}

/// Whether an instruction reads the scores other than through the argument of the maximum.
bool WgmmaSoftmax::wants_scores(int value) const {
  std::vector<bool> read(static_cast<std::size_t>(value) + 1, false);
  read.back() = true;
  for (int i = value; i >= 0; --i) {
    const bool known = i == program_[online_.most].args[0] || program_[i].kind == Kind::reduce;
    if (!read[i] || known) continue;
    if (i == score_) return true;
    for (const int arg : program_[i].args) read[arg] = true;
  }
  return false;
}

std::vector<Value> WgmmaSoftmax::take(Scopes& rows, const ScorePosition& tile, Value scores, Value thread) {
  const ElementwiseInstruction& most = program_[online_.most];
  const DType compute = compute_type(most.dtype);
  const int elements = scores.type.lanes;
  const auto registers = [&](DType dtype, const char* name) {
    return b_.alloc(dtype, elements, kernel::Space::register_, name);
  };
  const kernel::Buffer kept = registers(f32, "scores"), arguments = registers(compute, "arguments");
  weights_ = registers(plan_.tile.held, "weights");
  b_.store(kept, 0, scores);
  const auto score = [&](Value position) { return b_.load(kept, position, pair); };
  const Value lowest = reduction_identity(b_, most);
  std::vector<kernel::Var> here;
  for (std::size_t r = 0; r < rows.size(); ++r) here.push_back(b_.var({compute, pair}, b_.broadcast(lowest, pair)));
  each_pair(rows, tile, thread, [&](std::size_t r, Scope& point, Value position) {
    point.bind(score_, score(position));
    const Value argument = masked(point, emitter_.emit(most.args[0], point), lowest);
    b_.store(arguments, position, argument);
    b_.set(here[r], max(b_.get(here[r]), argument));
  });
  std::vector<Value> subtracted, factors;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Value largest = reduce(most.op, b_.reduce(most.op, b_.get(here[r])), thread);
    const RisingMaximum::Raised raised = rows_[r].maximum.raise(b_, largest);
    subtracted.push_back(raised.subtracted);
    factors.push_back(raised.factor);
    for (const kernel::Var sum : rows_[r].sums)
      b_.set(sum, b_.get(sum) * b_.broadcast(b_.cast(raised.factor, sum.type.scalar), pair));
  }
  const bool again = wants_scores(result_) || std::any_of(online_.sums.begin(), online_.sums.end(), [&](int sum) {
                       return wants_scores(program_[sum].args[0]);
                     });
  each_pair(rows, tile, thread, [&](std::size_t r, Scope& point, Value position) {
    if (again) point.bind(score_, score(position));
    point.bind(most.args[0], b_.load(arguments, position, pair));
    point.bind(online_.most, subtracted[r]);
    for (std::size_t s = 0; s < online_.sums.size(); ++s) {
      const kernel::Var sum = rows_[r].sums[s];
      const Value zero = b_.constant(sum.type.scalar, 0);
      b_.set(sum, b_.get(sum) + masked(point, emitter_.emit(program_[online_.sums[s]].args[0], point), zero));
    }
    const Value weight = emitter_.emit(result_, point);
    b_.store(weights_, position, b_.cast(masked(point, weight, b_.constant(weight.type.scalar, 0)), plan_.tile.held));
  });
  return factors;
}

Value WgmmaSoftmax::weights(int part) {
  constexpr int lanes = kernel::wgmma_rows * kernel::wgmma_depth / kernel::warpgroup_threads;
  return b_.load(weights_, part * lanes, lanes);
}

std::vector<Value> WgmmaSoftmax::finish(Scopes& rows, Value thread) {
  std::vector<Value> scales;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r]->bind(online_.most, b_.get(rows_[r].maximum.most));
    scales.push_back(rows_[r].maximum.end(b_, online_, context_.dim(plan_.attention.column_count)));
    for (std::size_t s = 0; s < online_.sums.size(); ++s) {
      const ElementwiseInstruction& sum = program_[online_.sums[s]];
      const Value combined = reduce(sum.op, b_.reduce(sum.op, b_.get(rows_[r].sums[s])), thread);
      rows[r]->bind(online_.sums[s], emitter_.round(combined * b_.cast(scales[r], combined.type.scalar), sum.dtype));
    }
  }
  return scales;
}

}  // namespace lathe::gpu
