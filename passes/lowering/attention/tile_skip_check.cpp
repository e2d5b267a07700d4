#include "passes/lowering/attention/tile_skip_check.h"

#include <algorithm>
#include <cmath>

namespace lathe {

namespace {
bool matters(const AttentionParts::Score& score, const ColumnBounds& bounds) {
  return std::find(bounds.anything.begin(), bounds.anything.end(), score.value) == bounds.anything.end();
}
}  // namespace

kernel::Value largest_magnitude(kernel::Builder& b, OperandLoader& loader, kernel::Value outer, kernel::Value first,
                                kernel::Value last, int lanes) {
  const DType compute = loader.compute();
  // Independent chains hide the latency of max.
  constexpr int chains = 8;
  std::vector<kernel::Var> largest;
  for (int i = 0; i < chains; ++i) largest.push_back(b.var({compute, lanes}, b.constant(compute, 0, lanes)));
  const kernel::Value depth = loader.context().dim(loader.operand().size);
  b.for_loop(first, last, chains, [&](kernel::Value position) {
    vector_loop(b, b.index(0), depth, lanes, [&](kernel::Value d, kernel::Value mask) {
      for (int i = 0; i < chains; ++i) {
        const kernel::Value here = i == 0 ? position : min(position + i, last - 1);
        const kernel::Value elements = loader.load(outer, here, d, LaneAxis::k, lanes, mask);
        const kernel::Var chain = largest[i];
        b.set(chain, max(b.get(chain), b.apply(ScalarOp::abs, {elements})));
      }
    });
  });
  kernel::Value found = b.get(largest[0]);
  for (int i = 1; i < chains; ++i) found = max(found, b.get(largest[i]));
  return b.reduce(ScalarOp::max, found);
}

std::vector<const AttentionOperand*> bounded_operands(const AttentionParts& parts, const ColumnBounds& bounds) {
  std::vector<const AttentionOperand*> found;
  for (const AttentionParts::Score& score : parts.scores)
    if (matters(score, bounds)) found.insert(found.end(), {&score.rows, &score.columns});
  for (const AttentionParts::OutputProduct& output : parts.outputs) found.push_back(&output.other);
  return found;
}

kernel::Value largest_score_bound(KernelContext& context, const AttentionParts& parts, const ColumnBounds& bounds,
                                  const std::function<kernel::Value(const AttentionOperand&)>& largest) {
  kernel::Builder& b = context.builder;
  kernel::Value bound = b.constant(parts.compute, 1);
  for (const AttentionParts::Score& score : parts.scores) {
    if (!matters(score, bounds)) continue;
    const kernel::Value depth = b.cast(context.dim(score.depth), parts.compute);
    bound = max(bound, largest(score.rows) * largest(score.columns) * depth * 1.01);
  }
  for (const AttentionParts::OutputProduct& output : parts.outputs) bound = max(bound, largest(output.other));
  return bound;
}

kernel::Value rows_allow_skip(ElementwiseEmitter& emitter, const ColumnBounds& bounds,
                              std::span<const std::unique_ptr<ElementwiseEmitter::Scope>> rows,
                              kernel::Value largest_score) {
  kernel::Builder& b = emitter.context().builder;
  const auto number = [&](double value) { return kernel::number_like(largest_score, value); };
  kernel::Value all;
  const auto require = [&](kernel::Value condition, kernel::Value mask) {
    condition = b.broadcast(condition, mask.type.lanes) || kernel::logical_not(mask);
    all = all ? all && condition : condition;
  };
  for (const auto& scope : rows) {
    const auto row_value = [&](int i) { return b.cast(emitter.emit(i, *scope), largest_score.type.scalar); };
    for (const ColumnBounds::Check& check : bounds.checks) {
      kernel::Value sum = number(check.base), terms = number(std::fabs(check.base));
      if (check.scale != 0) {
        sum = sum + largest_score * check.scale;
        terms = terms + largest_score * check.scale;
      }
      for (const auto& [i, sign] : check.rows) {
        const kernel::Value row = row_value(i);
        sum = sign > 0 ? sum + row : sum - row;
        terms = terms + b.apply(ScalarOp::abs, {row});
      }
      // Margin for rounding of the sum: 1e-6 times the largest possible absolute values of its terms.
      require((std::isinf(check.base) ? sum : sum + terms * 1e-6) < check.limit, scope->mask);
    }
    for (const int i : bounds.finite) require(b.apply(ScalarOp::abs, {row_value(i)}) < row_limit, scope->mask);
    for (const int i : bounds.nonzero) {
      const kernel::Value row = row_value(i);
      require(kernel::not_equal(row, 0.0) && kernel::equal(row, row), scope->mask);
    }
  }
  return all ? b.reduce(ScalarOp::logical_and, all) : b.constant_int(boolean, 1);
}

}  // namespace lathe
