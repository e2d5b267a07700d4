#include "passes/gpu/attention/wgmma/wgmma_softmax.h"

#include <algorithm>
#include <numbers>

#include "ir/kernel/intrinsics/fast_math.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/wgmma/score_scale.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/attention/softmax_divisor.h"

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
      result_(plan.attention.parts.outputs[0].value) {
  find_powers();
}

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

/// Returns memory for a thread's elements of a tile.
kernel::Buffer WgmmaSoftmax::registers(DType dtype, const char* name) {
  return b_.alloc(dtype, columns_ / 2, kernel::Space::register_, name);
}

void WgmmaSoftmax::declare() { weights_ = registers(plan_.tile.held, "weights"); }

void WgmmaSoftmax::begin(Scopes& rows) {
  const auto start = [&](int reduction) {
    const ElementwiseInstruction& i = program_[reduction];
    return b_.var({compute_type(i.dtype), 1}, reduction_identity(b_, i));
  };
  rows_.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows_.push_back({{start(online_.most)}, {}});
    for (const int sum : online_.sums) rows_.back().sums.push_back(start(sum));
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
  return reduce_with_partners(b_, op, own, thread, threads_of_row);
}

/// Whether computing a value needs another one, other than through known ones.
bool WgmmaSoftmax::needs(int value, int other, const std::vector<int>& known) const {
  std::vector<bool> read(static_cast<std::size_t>(value) + 1, false);
  read.back() = true;
  for (int i = value; i >= 0; --i) {
    if (!read[i] || program_[i].kind == Kind::reduce || std::ranges::count(known, i) > 0) continue;
    if (i == other) return true;
    for (const int arg : program_[i].args) read[arg] = true;
  }
  return false;
}

/// Whether a value is exp(argument - maximum), cast or not.
bool WgmmaSoftmax::is_exponential(int value) const {
  while (is_scalar(program_[value], ScalarOp::cast)) value = program_[value].args[0];
  if (!is_scalar(program_[value], ScalarOp::exp)) return false;
  const ElementwiseInstruction& difference = program_[program_[value].args[0]];
  return is_scalar(difference, ScalarOp::sub) && difference.args[0] == program_[online_.most].args[0] &&
         without_least_maximum(program_, difference.args[1]) == online_.most;
}

void WgmmaSoftmax::find_powers() {
  std::vector<int> terms = {result_};
  for (const int sum : online_.sums) terms.push_back(program_[sum].args[0]);
  const int argument = program_[online_.most].args[0];
  const auto is_f32 = [&](int value) { return compute_type(program_[value].dtype) == f32; };
  reads_scores_ = std::ranges::any_of(terms, [&](int term) { return needs(term, score_, {argument}); });
  takes_powers_ = is_f32(online_.most) &&
                  std::ranges::all_of(terms, [&](int term) { return is_f32(term) && is_exponential(term); });
  if (takes_powers_) scale_ = scale_of_score(program_, plan_.attention.bounds, score_, argument);
}

/// Computes the arguments of the maximum, and returns the largest one of each row. They replace the scores in
/// `arguments` or, in a whole tile with a scale, remain to be multiplied by it.
std::vector<Value> WgmmaSoftmax::largest(Scopes& rows, const ScorePosition& tile, const Tile& in, Value thread) {
  const ElementwiseInstruction& most = program_[online_.most];
  const Value lowest = reduction_identity(b_, most);
  std::vector<kernel::Var> here;
  for (std::size_t r = 0; r < rows.size(); ++r)
    here.push_back(b_.var({compute_type(most.dtype), pair}, b_.broadcast(lowest, pair)));
  const auto take = [&](std::size_t r, Value argument) { b_.set(here[r], max(b_.get(here[r]), argument)); };
  const auto compute = [&](std::size_t r, Scope& point, Value position) {
    point.bind(score_, b_.load(in.scores, position, pair));
    const Value argument = masked(point, emitter_.emit(most.args[0], point), lowest);
    b_.store(in.arguments, position, argument);
    take(r, argument);
  };
  const auto read = [&](Value i) {
    for (std::size_t r = 0; r < rows.size(); ++r) take(r, b_.load(in.scores, element(i, r), pair));
  };
  const auto whole = [&] {
    if (scale_)
      b_.for_loop(0, columns_ / row_step, 1, read, LoopKind::unroll);
    else
      each_pair(rows, tile, thread, true, compute);
  };
  b_.if_(in.whole, whole, [&] { each_pair(rows, tile, thread, false, compute); });
  std::vector<Value> found;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Value own = reduce(most.op, b_.reduce(most.op, b_.get(here[r])), thread);
    found.push_back(scale_ ? own * in.scale : own);
  }
  return found;
}

/// Adds the terms of the tile to the sums of the rows and stores the weights in place of the scores; `whole`: for
/// tiles in which all columns are valid.
void WgmmaSoftmax::add_terms(Scopes& rows, const ScorePosition& tile, const Tile& in, Value thread, bool whole) {
  each_pair(rows, tile, thread, whole, [&](std::size_t r, Scope& point, Value position) {
    if (reads_scores_) point.bind(score_, b_.load(in.scores, position, pair));
    const Value argument = b_.load(in.arguments, position, pair);
    point.bind(program_[online_.most].args[0], scale_ ? argument * b_.broadcast(in.scale, pair) : argument);
    point.bind(online_.most, in.subtracted[r]);
    for (std::size_t s = 0; s < online_.sums.size(); ++s) {
      const kernel::Var sum = rows_[r].sums[s];
      const Value zero = b_.constant(sum.type.scalar, 0);
      const Value terms = masked(point, emitter_.emit(program_[online_.sums[s]].args[0], point), zero);
      b_.set(sum, b_.get(sum) + b_.reduce(ScalarOp::add, terms));
    }
    const Value weight = emitter_.emit(result_, point);
    b_.store(terms_, position, b_.cast(masked(point, weight, b_.constant(weight.type.scalar, 0)), f32));
  });
}

/// The same by one fma and one power of two per column, as exp(a - m) = 2^(a log2 e - m log2 e). Columns past the end
/// have the argument -inf.
void WgmmaSoftmax::add_powers(const Tile& in) {
  const Value log2_e = b_.constant(f32, std::numbers::log2e);
  const Value factor = b_.broadcast(
      scale_ ? b_.select(in.whole, b_.constant(f32, *scale_ * std::numbers::log2e), log2_e) : log2_e, pair);
  std::vector<Value> offsets;
  for (const Value m : in.subtracted) offsets.push_back(b_.broadcast(b_.constant(f32, 0) - m * log2_e, pair));
  const auto pairs = [&](Value i) {
    for (std::size_t r = 0; r < in.subtracted.size(); ++r) {
      const Value power =
          kernel::fast_exp2(b_, b_.fma(b_.load(in.arguments, element(i, r), pair), factor, offsets[r]));
      for (const kernel::Var sum : rows_[r].sums) b_.set(sum, b_.get(sum) + b_.reduce(ScalarOp::add, power));
      b_.store(terms_, element(i, r), power);
    }
  };
  b_.for_loop(0, columns_ / row_step, 1, pairs, LoopKind::unroll);
}

std::vector<Value> WgmmaSoftmax::take(Scopes& rows, const ScorePosition& position, Value scores, Value thread) {
  const DType compute = compute_type(program_[online_.most].dtype);
  terms_ = registers(f32, "scores");
  Tile in{terms_,
          reads_scores_ || compute != f32 ? registers(compute, "arguments") : terms_,
          all_inside(position, thread),
          {},
          {}};
  if (scale_) in.scale = b_.select(in.whole, b_.constant(f32, *scale_), b_.constant(f32, 1));
  b_.store(terms_, 0, scores);
  const std::vector<Value> most = largest(rows, position, in, thread);
  std::vector<Value> factors;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const RisingMaximum::Raised raised = rows_[r].maximum.raise(b_, most[r], true);
    in.subtracted.push_back(raised.subtracted);
    factors.push_back(raised.factor);
    for (const kernel::Var sum : rows_[r].sums) b_.set(sum, b_.get(sum) * b_.cast(raised.factor, sum.type.scalar));
  }
  const auto masked = [&] { add_terms(rows, position, in, thread, false); };
  if (!takes_powers_) {
    b_.if_(in.whole, [&] { add_terms(rows, position, in, thread, true); }, masked);
    return factors;
  }
  Value small = b_.constant_int(boolean, 1);
  for (const Value m : in.subtracted) small = small && b_.apply(ScalarOp::abs, {m}) < most_of_powers;
  b_.if_(small, [&] { add_powers(in); }, masked);
  return factors;
}

void WgmmaSoftmax::round_weights() {
  const auto pairs = [&](Value i) {
    b_.store(weights_, i * pair, b_.cast(b_.load(terms_, i * pair, pair), plan_.tile.held));
  };
  b_.for_loop(0, columns_ / 2 / pair, 1, pairs, LoopKind::unroll);
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
      const Value combined = reduce(sum.op, b_.get(rows_[r].sums[s]), thread);
      rows[r]->bind(online_.sums[s], emitter_.round(combined * b_.cast(scales[r], combined.type.scalar), sum.dtype));
    }
  }
  return scales;
}

}  // namespace lathe::gpu
