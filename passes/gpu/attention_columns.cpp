#include "passes/gpu/attention_block.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Kind = PointInstruction::Kind;

namespace {

/// Products over rows: a block sums for a strip of columns what all rows have there, row by row in order.
class ColumnStrips {
 public:
  explicit ColumnStrips(const AttentionPlan& plan)
      : plan_(plan), block_(plan, true, false, "attention_columns"), b_(block_.b), span_(plan.tile.span()) {
    look_at_values();
  }

  KernelContext::Built run() {
    std::vector<std::pair<int, DType>> read;
    for (const auto& [reduction, buffer] : plan_.row_values)
      read.emplace_back(buffer, compute_type(block_.program[reduction].dtype));
    if (plan_.skips >= 0) read.emplace_back(plan_.skips, boolean);
    block_.begin({}, read);
    const AttentionParts& parts = plan_.attention.parts;
    const Value strips = b_.ceil_div(block_.column_count, span_), depths = block_.depth_blocks();
    const auto block = [&](Value i) {
      const Value outer = i / depths / strips, column = i / depths % strips * span_;
      block_.threads(i % depths, [&](const AttentionThread& thread) { strip(outer, column, thread); });
    };
    b_.for_loop(0, block_.context.dim(parts.parallel) * strips * depths, 1, block, LoopKind::block_x);
    Dim depth(0);
    for (const auto& sum : block_.sums) depth = depth + sum->part().depth;
    auto built = block_.context.finish();
    built.launch.flops = plan_.attention.flops(depth);
    return built;
  }

 private:
  /// The scores that the products need, and what they need of each row besides its reductions.
  void look_at_values() {
    const PointProgram& program = block_.program;
    std::vector<bool> needed(program.code.size(), false);
    for (const auto& sum : block_.sums) needed[static_cast<std::size_t>(sum->part().value)] = true;
    for (int i = program.size() - 1; i >= 0; --i) {
      if (!needed[static_cast<std::size_t>(i)] || program[i].kind == Kind::reduce) continue;
      for (const int arg : program[i].args) needed[static_cast<std::size_t>(arg)] = true;
      if (program[i].kind == Kind::accumulator) wanted_.push_back(i);
      if (!plan_.strips.varies(i)) fixed_.insert(fixed_.begin(), i);
    }
  }

  void strip(Value outer, Value column, const AttentionThread& thread) {
    const Value serial = block_.context.dim(plan_.attention.parts.serial);
    b_.for_loop(0, serial, 1, [&](Value s) {
      b_.for_loop(0, block_.row_count, span_, [&](Value row) {
        const Value here = outer * serial + s;
        const Value looked_at = b_.select(left_out(here, row, column), b_.index(0), b_.index(1));
        b_.for_loop(0, looked_at, 1, [&](Value) { tile(here, row, column, thread); });
      });
    });
    for (auto& sum : block_.sums) sum->finish(outer, column, thread);
  }

  /// Whether all rows of the tile leave out all of its columns.
  Value left_out(Value outer, Value row, Value column) {
    if (plan_.skips < 0) return b_.constant_int(boolean, 0);
    KernelContext& context = block_.context;
    const ColumnBounds& bounds = plan_.attention.bounds;
    Value outside = b_.constant_int(boolean, 0);
    if (bounds.upper) outside = outside || column > row + (span_ - 1) + context.dim(*bounds.upper);
    if (bounds.lower) outside = outside || column + (span_ - 1) < row + context.dim(*bounds.lower);
    const Value strips = context.dim(plan_.strips_of(plan_.attention.rows));
    return outside && b_.load(context.buffer(plan_.skips), outer * strips + row / span_);
  }

  void tile(Value outer, Value first_row, Value first_column, const AttentionThread& thread) {
    AttentionBlock::Scopes rows = block_.rows(outer, first_row, thread);
    for (int r = 0; r < plan_.tile.own(); ++r) {
      PointEmitter::Scope& scope = *rows[static_cast<std::size_t>(r)];
      const Value row = min(first_row + thread.y * plan_.tile.own() + r, block_.row_count - 1);
      for (const auto& [reduction, buffer] : plan_.row_values)
        scope.bind(reduction, b_.load(block_.context.buffer(buffer), outer * block_.row_count + row));
      for (const int i : fixed_) block_.emitter.emit(i, scope);
    }
    AttentionBlock::Scopes points = block_.points(rows, outer, first_row, first_column, wanted_, thread);
    for (auto& sum : block_.sums)
      for (auto& point : points) block_.emitter.emit(sum->part().value, *point);
    for (auto& sum : block_.sums) block_.add(*sum, rows, points, outer, first_row, thread);
  }

  const AttentionPlan& plan_;
  AttentionBlock block_;
  kernel::Builder& b_;
  int span_;
  std::vector<int> wanted_, fixed_;
};

}  // namespace

KernelContext::Built lower_attention_columns(const AttentionPlan& plan) { return ColumnStrips(plan).run(); }

}  // namespace lathe::gpu
