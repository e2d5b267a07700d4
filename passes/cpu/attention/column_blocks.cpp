#include "passes/cpu/attention/column_blocks.h"

#include <algorithm>

namespace lathe::cpu {

namespace {
constexpr std::int64_t usual_depth = 64;       // where it is unknown
constexpr std::int64_t block_bytes = 1 << 20;  // of the 1 or 2 MiB of L2 that cores have
constexpr std::int64_t most_bytes = 2 << 20;   // of all columns, where they are not split
}  // namespace

int block_columns(const AttentionParts& parts, const RowBlockPlan& plan, const Dim& columns, int block_rows,
                  int multiple) {
  const bool whole_rows = std::any_of(plan.loops().begin(), plan.loops().end(),
                                      [](const auto& loop) { return !loop.reductions.empty(); });
  if (whole_rows || !parts.sums_over_rows()) return 0;
  std::int64_t numbers = 0;
  for (const AttentionParts::Score& score : parts.scores) numbers += score.depth.value().value_or(usual_depth);
  for (const AttentionParts::OutputProduct& end : parts.outputs)
    if (end.over_rows) numbers += end.depth.value().value_or(usual_depth);
  numbers += static_cast<std::int64_t>(plan.slots()) * block_rows;
  const std::int64_t bytes = numbers * static_cast<std::int64_t>(size_in_bytes(parts.compute));
  const auto known = columns.value();
  if (known && *known * bytes <= most_bytes) return 0;
  const int fit = static_cast<int>(block_bytes / bytes) / multiple * multiple;
  return std::max(fit, multiple);
}

}  // namespace lathe::cpu
