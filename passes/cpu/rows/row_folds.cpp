#include "passes/cpu/rows/row_folds.h"

#include <algorithm>

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Returns the number of accumulators of each reduction: at most the number of vectors in the width. It does not
/// depend on the added value, so that a sum has the same bits if values are recomputed instead of read.
int chains_of(const ElementwiseProgram& program, const RowSpace& space, int most) {
  const auto size = program.points(space.inner).value();
  int chains = most;
  while (size && chains > 1 && *size < chains * space.lanes) chains /= 2;
  return chains;
}

}  // namespace

RowFolds::RowFolds(kernel::Builder& b, ElementwiseEmitter& emitter, const ElementwiseProgram& program,
                   const RowSpace& space, std::vector<int> reductions, int most_chains)
    : b_(b),
      emitter_(emitter),
      program_(program),
      space_(space),
      chains_(reductions.empty() ? 1 : chains_of(program, space, most_chains)) {
  for (const int i : reductions) {
    Fold& fold = folds_.emplace_back(Fold{.reduction = i, .chains = {}});
    for (int c = 0; c < chains_; ++c)
      fold.chains.push_back(
          b_.var({compute_type(program_[i].dtype), space_.lanes}, reduction_identity(b_, program_[i])));
  }
}

void RowFolds::add_totals() {
  for (Fold& fold : folds_) fold.total = total_of(program_[fold.reduction]);
}

/// Returns the total of the blocks of a long sum, whose accumulators add `chains_` vectors per step; nothing for
/// others.
std::optional<BlockTotal> RowFolds::total_of(const ElementwiseInstruction& reduce) const {
  const DType compute = compute_type(reduce.dtype);
  auto steps = program_.points(space_.inner).value();
  if (steps) *steps /= chains_ * space_.lanes;
  if (!adds_in_blocks(reduce.op, compute, steps)) return std::nullopt;
  return BlockTotal(b_, reduce.op, b_.broadcast(reduction_identity(b_, reduce), space_.lanes));
}

bool RowFolds::in_blocks() const {
  return std::any_of(folds_.begin(), folds_.end(), [](const Fold& fold) { return fold.total.has_value(); });
}

void RowFolds::accumulate(int chain, Scope& element) {
  for (const Fold& fold : folds_) accumulate(fold, chain, element);
}

void RowFolds::accumulate(const Fold& fold, int chain, Scope& element) {
  const ElementwiseInstruction& reduce = program_[fold.reduction];
  Value value = b_.broadcast(emitter_.emit(reduce.args[0], element), space_.lanes);
  if (element.mask)
    value = b_.select(element.mask, value, b_.broadcast(reduction_identity(b_, reduce), space_.lanes));
  // min and max check their first operand for NaN. With the new value there, the check does not lengthen the
  // dependency chain.
  const kernel::Var& accumulator = fold.chains[chain];
  b_.set(accumulator, b_.apply(reduce.op, {value, b_.get(accumulator)}));
}

/// Returns a reduction's chains, combined in pairs lane by lane.
Value RowFolds::combined(const Fold& fold) {
  std::vector<Value> values;
  for (const kernel::Var& chain : fold.chains) values.push_back(b_.get(chain));
  for (std::size_t n = values.size() / 2; n > 0; n /= 2)
    for (std::size_t c = 0; c < n; ++c) values[c] = b_.apply(program_[fold.reduction].op, {values[c], values[c + n]});
  return values[0];
}

void RowFolds::end_block() {
  for (Fold& fold : folds_) {
    if (!fold.total) continue;
    fold.total->add(combined(fold));
    for (const kernel::Var& chain : fold.chains) b_.set(chain, reduction_identity(b_, program_[fold.reduction]));
  }
}

void RowFolds::finish(Scope& row) {
  for (Fold& fold : folds_) finish(fold, row);
}

void RowFolds::finish(Fold& fold, Scope& row) {
  const ElementwiseInstruction& reduce = program_[fold.reduction];
  Value value = combined(fold);
  if (fold.total) {
    fold.total->add(value);
    value = fold.total->get();
  }
  if (space_.lanes > 1) value = b_.reduce(reduce.op, value);
  row.bind(fold.reduction, rounded(b_, value, reduce.dtype));
}

}  // namespace lathe::cpu
