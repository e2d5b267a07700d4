#include "passes/gpu/attention/attention_known_rows.h"

#include <algorithm>

namespace lathe::gpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;

NeededOfRows needed_of_rows(const AttentionPlan& plan, const std::vector<int>& values,
                            const std::vector<int>& known) {
  const ElementwiseProgram& program = plan.attention.program;
  NeededOfRows found{std::vector<bool>(program.code.size(), false), {}, {}};
  for (const int value : values) found.all[value] = true;
  for (int i = program.size() - 1; i >= 0; --i) {
    const bool is_result = program[i].kind == Kind::reduce || plan.row_values.contains(i) ||
                           std::find(known.begin(), known.end(), i) != known.end();
    if (!found.all[i] || is_result) continue;
    for (const int arg : program[i].args) found.all[arg] = true;
    if (program[i].kind == Kind::accumulator) found.scores.push_back(i);
    if (!plan.row_blocks.varies(i)) found.fixed.insert(found.fixed.begin(), i);
  }
  return found;
}

std::vector<int> summed_over_rows(const AttentionPlan& plan) {
  std::vector<int> found;
  for (const AttentionParts::OutputProduct& output : plan.attention.parts.outputs)
    if (output.over_rows) found.push_back(output.value);
  return found;
}

std::vector<std::pair<int, DType>> buffers_of_known_rows(const AttentionPlan& plan) {
  std::vector<std::pair<int, DType>> found;
  for (const auto& [reduction, buffer] : plan.row_values)
    found.emplace_back(buffer, compute_type(plan.attention.program[reduction].dtype));
  if (plan.skips >= 0) found.emplace_back(plan.skips, boolean);
  return found;
}

void bind_known_rows(KernelContext& context, const AttentionPlan& plan, ElementwiseEmitter::Scope& scope, Value outer,
                     Value row, int lanes, Value mask) {
  const Value first = outer * context.dim(plan.attention.rows) + row;
  for (const auto& [reduction, buffer] : plan.row_values)
    if (!scope.find(reduction))
      scope.bind(reduction, context.builder.load(context.buffer(buffer), first, lanes, mask));
}

KnownRows::KnownRows(const AttentionPlan& plan, AttentionBlock& block, std::vector<int> values)
    : plan_(plan), block_(block), b_(block.b), values_(std::move(values)), needed_(needed_of_rows(plan, values_)) {}

/// Returns whether all rows of the tile skip all of its columns.
Value KnownRows::left_out(const ScorePosition& tile) {
  if (plan_.skips < 0) return b_.constant_int(boolean, 0);
  KernelContext& context = block_.context;
  const int span = plan_.tile.span();
  const ColumnBounds& bounds = plan_.attention.bounds;
  Value outside = b_.constant_int(boolean, 0);
  if (bounds.upper) outside = outside || tile.column > tile.row + (span - 1) + context.dim(*bounds.upper);
  if (bounds.lower) outside = outside || tile.column + (span - 1) < tile.row + context.dim(*bounds.lower);
  const Value row_blocks = context.dim(plan_.blocks_of(plan_.attention.rows));
  return outside && b_.load(context.buffer(plan_.skips), tile.outer * row_blocks + tile.row / span);
}

void KnownRows::tile(const ScorePosition& here, bool rows_follow, const AttentionThread& thread, const Body& body) {
  const int span = plan_.tile.span(), own = plan_.tile.own();
  b_.for_loop(0, b_.select(left_out(here), b_.index(0), b_.index(1)), 1, [&](Value) {
    std::optional<AttentionSteps::Next> next;
    if (rows_follow && block_.steps.slots() > 1) {
      const Value row = here.row + span, last = (block_.row_count - 1) / span * span;
      const Value out = left_out({here.outer, min(row, last), here.column});
      next = AttentionSteps::Next{{here.outer, row, here.column}, row < block_.row_count && kernel::logical_not(out)};
    }
    std::vector<AttentionSums*> sums;
    for (auto& sum : block_.sums) sums.push_back(sum.get());
    block_.start(needed_.scores, sums, here, next, thread);
    AttentionBlock::Scopes rows = block_.rows(here.outer, here.row, thread);
    for (int r = 0; r < own; ++r) {
      ElementwiseEmitter::Scope& scope = *rows[r];
      const Value row = min(here.row + thread.y * own + r, block_.row_count - 1);
      bind_known_rows(block_.context, plan_, scope, here.outer, row, 1, {});
      for (const int i : needed_.fixed) block_.emitter.emit(i, scope);
    }
    AttentionBlock::Scopes points = block_.points(rows, here, needed_.scores, thread);
    for (const int value : values_)
      for (auto& point : points) block_.emitter.emit(value, *point);
    for (AttentionSums* sum : sums) block_.add(*sum, rows, points, thread);
    if (body) body(points);
  });
}

}  // namespace lathe::gpu
