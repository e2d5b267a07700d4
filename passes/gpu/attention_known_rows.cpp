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
Value KnownRows::left_out(const AttentionPlace& tile) {
  if (plan_.skips < 0) return b_.constant_int(boolean, 0);
  KernelContext& context = block_.context;
  const ColumnBounds& bounds = plan_.attention.bounds;
  const int span = plan_.tile.span();
  Value outside = b_.constant_int(boolean, 0);
  if (bounds.upper) outside = outside || tile.column > tile.row + (span - 1) + context.dim(*bounds.upper);
  if (bounds.lower) outside = outside || tile.column + (span - 1) < tile.row + context.dim(*bounds.lower);
  const Value strips = context.dim(plan_.strips_of(plan_.attention.rows));
  return outside && b_.load(context.buffer(plan_.skips), tile.outer * strips + tile.row / span);
}

void KnownRows::tile(const AttentionPlace& here, bool rows_follow, const AttentionThread& thread, const Body& body) {
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
    block_.start(scores_, sums, here, next, thread);
    AttentionBlock::Scopes rows = block_.rows(here.outer, here.row, thread);
    for (int r = 0; r < own; ++r) {
      PointEmitter::Scope& scope = *rows[static_cast<std::size_t>(r)];
      const Value row = min(here.row + thread.y * own + r, block_.row_count - 1);
      for (const auto& [reduction, buffer] : plan_.row_values)
        scope.bind(reduction, b_.load(block_.context.buffer(buffer), here.outer * block_.row_count + row));
      for (const int i : fixed_) block_.emitter.emit(i, scope);
    }
    AttentionBlock::Scopes points = block_.points(rows, here, scores_, thread);
    for (const int value : values_)
      for (auto& point : points) block_.emitter.emit(value, *point);
    for (AttentionSums* sum : sums) block_.add(*sum, rows, points, thread);
    if (body) body(points);
  });
}

}  // namespace lathe::gpu
