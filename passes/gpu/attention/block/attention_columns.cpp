#include "passes/gpu/attention/attention_known_rows.h"

namespace lathe::gpu {

using kernel::Value;

namespace {

/// Matmuls over rows: a block sums over all rows for one column block, in row order.
class ColumnBlocks {
 public:
  explicit ColumnBlocks(const AttentionPlan& plan)
      : plan_(plan),
        block_(plan, OutputProducts::over_rows, {}, "attention_columns", KernelRole::attention_columns),
        known_(plan, block_, summed_over_rows(plan)),
        b_(block_.b),
        span_(plan.tile.span()) {}

  KernelContext::Built run() {
    block_.begin({}, buffers_of_known_rows(plan_));
    const AttentionParts& parts = plan_.attention.parts;
    const Value column_blocks = b_.ceil_div(block_.column_count, span_), depths = block_.depth_blocks();
    const auto block = [&](Value i) {
      const Value outer = i / depths / column_blocks, column = i / depths % column_blocks * span_;
      block_.threads(i % depths, [&](const AttentionThread& thread) { column_block(outer, column, thread); });
    };
    b_.for_loop(0, block_.context.dim(parts.parallel) * column_blocks * depths, 1, block, kernel::LoopKind::block_x);
    Dim depth(0);
    for (const auto& sum : block_.sums) depth = depth + sum->part().depth;
    auto built = block_.context.finish();
    built.launch.flops = plan_.attention.flops(depth);
    return built;
  }

 private:
  void column_block(Value outer, Value column, const AttentionThread& thread) {
    const Value sequential = block_.context.dim(plan_.attention.parts.sequential);
    b_.for_loop(0, sequential, 1, [&](Value s) {
      b_.for_loop(0, block_.row_count, span_,
                  [&](Value row) { known_.tile({outer * sequential + s, row, column}, true, thread); });
    });
    for (auto& sum : block_.sums) sum->finish(outer, column, thread);
  }

  const AttentionPlan& plan_;
  AttentionBlock block_;
  KnownRows known_;
  kernel::Builder& b_;
  int span_;
};

}  // namespace

KernelContext::Built lower_attention_columns(const AttentionPlan& plan) { return ColumnBlocks(plan).run(); }

}  // namespace lathe::gpu
