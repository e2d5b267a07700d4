#include "passes/gpu/attention_known_rows.h"

namespace lathe::gpu {

using kernel::Value;
using Kind = PointInstruction::Kind;

KnownRows::KnownRows(const AttentionPlan& plan, AttentionBlock& block, std::vector<int> values)
    : plan_(plan), block_(block), b_(block.b), values_(std::move(values)) {
  const PointProgram& program = block_.program;
  std::vector<bool> needed(program.code.size(), false);
  for (const int value : values_) needed[static_cast<std::size_t>(value)] = true;
  for (int i = program.size() - 1; i >= 0; --i) {
    if (!needed[static_cast<std::size_t>(i)] || program[i].kind == Kind::reduce) continue;
    for (const int arg : program[i].args) needed[static_cast<std::size_t>(arg)] = true;
    if (program[i].kind == Kind::accumulator) scores_.push_back(i);
    if (!plan_.strips.varies(i)) fixed_.insert(fixed_.begin(), i);
  }
}

std::vector<std::pair<int, DType>> KnownRows::reads() const {
  std::vector<std::pair<int, DType>> found;
  for (const auto& [reduction, buffer] : plan_.row_values)
    found.emplace_back(buffer, compute_type(block_.program[reduction].dtype));
  if (plan_.skips >= 0) found.emplace_back(plan_.skips, boolean);
  return found;
}

/// Whether all rows of the tile leave out all of its columns.
Value KnownRows::left_out(Value outer, Value row, Value column) {
  if (plan_.skips < 0) return b_.constant_int(boolean, 0);
  KernelContext& context = block_.context;
  const ColumnBounds& bounds = plan_.attention.bounds;
  const int span = plan_.tile.span();
  Value outside = b_.constant_int(boolean, 0);
  if (bounds.upper) outside = outside || column > row + (span - 1) + context.dim(*bounds.upper);
  if (bounds.lower) outside = outside || column + (span - 1) < row + context.dim(*bounds.lower);
  const Value strips = context.dim(plan_.strips_of(plan_.attention.rows));
  return outside && b_.load(context.buffer(plan_.skips), outer * strips + row / span);
}

void KnownRows::tile(Value outer, Value first_row, Value first_column, const AttentionThread& thread,
                     const Body& body) {
  const Value looked_at = b_.select(left_out(outer, first_row, first_column), b_.index(0), b_.index(1));
  b_.for_loop(0, looked_at, 1, [&](Value) {
    AttentionBlock::Scopes rows = block_.rows(outer, first_row, thread);
    for (int r = 0; r < plan_.tile.own(); ++r) {
      PointEmitter::Scope& scope = *rows[static_cast<std::size_t>(r)];
      const Value row = min(first_row + thread.y * plan_.tile.own() + r, block_.row_count - 1);
      for (const auto& [reduction, buffer] : plan_.row_values)
        scope.bind(reduction, b_.load(block_.context.buffer(buffer), outer * block_.row_count + row));
      for (const int i : fixed_) block_.emitter.emit(i, scope);
    }
    AttentionBlock::Scopes points = block_.points(rows, outer, first_row, first_column, scores_, thread);
    for (const int value : values_)
      for (auto& point : points) block_.emitter.emit(value, *point);
    body(rows, points);
  });
}

}  // namespace lathe::gpu
