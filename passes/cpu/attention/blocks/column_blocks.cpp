#include "passes/cpu/attention/blocks/column_blocks.h"

#include <algorithm>

namespace lathe::cpu {

namespace {
constexpr std::int64_t usual_depth = 64;  // assumed if unknown
}  // namespace

int block_columns(const AttentionParts& parts, const RowBlockPlan& plan, const Dim& columns, int block_rows,
                  int multiple, const CpuInfo& cpu) {
  const bool whole_rows = std::any_of(plan.loops().begin(), plan.loops().end(),
                                      [](const auto& loop) { return !loop.reductions.empty(); });
  if (whole_rows || !parts.sums_over_rows()) return 0;
  std::int64_t numbers = 0;
  for (const AttentionParts::Score& score : parts.scores) numbers += score.depth.value().value_or(usual_depth);
  for (const AttentionParts::OutputProduct& output : parts.outputs)
    if (output.over_rows) numbers += output.depth.value().value_or(usual_depth);
  numbers += static_cast<std::int64_t>(plan.slots()) * block_rows;
  const std::int64_t bytes = numbers * static_cast<std::int64_t>(size_in_bytes(parts.compute));
  const auto known = columns.value();
  const std::int64_t block_bytes = cpu.l2.share();
  if (known && *known * bytes <= 2 * block_bytes) return 0;
  const int fit = static_cast<int>(block_bytes / bytes) / multiple * multiple;
  return std::max(fit, multiple);
}

}  // namespace lathe::cpu
