#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_attention.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"

namespace lathe::gpu {

namespace {

constexpr std::int64_t for_barriers = 1024;  // and to combine the rows' checks

std::string why_not(const AttentionPlan& plan) {
  const AttentionParts& parts = plan.attention.parts;
  const GpuInfo& gpu = plan.lowering.gpu;
  if (!plan.tile.tensor_cores()) return "its products are not of bf16 or f16 alone";
  if (!plan.online) return "its softmax takes several loops over the columns";
  if (parts.scores.size() != 1 || parts.outputs.size() != 1)
    return fmt::format("{} products make its scores, {} end it", parts.scores.size(), parts.outputs.size());
  const AttentionParts::Score& score = parts.scores[0];
  const AttentionParts::OutputProduct& output = parts.outputs[0];
  for (const Dim& depth : {score.depth, output.depth})
    if (const auto known = depth.value(); !known || *known < 1 || *known > attention_registers.most_depth)
      return fmt::format("a depth of {}, where up to {} is known to fit", depth.to_string(),
                         attention_registers.most_depth);
  if (!are_boxes(gpu, score.columns, plan.tile.held, false))
    return "its keys are computed, or no boxes that TMA copies";
  if (!are_boxes(gpu, output.other, plan.tile.held, true))
    return "its values are computed, or no boxes that TMA copies";
  if (const auto rows = plan.attention.rows.value(); rows && *rows <= kernel::wgmma_rows)
    return fmt::format("it has {} rows", *rows);
  return "";
}

}  // namespace

std::int64_t WgmmaBlocks::shared_bytes(const GpuInfo& gpu) const {
  return (gpu.most_shared_bytes + gpu.reserved_shared_bytes) / at_once - gpu.reserved_shared_bytes;
}

int WgmmaBlocks::registers(const GpuInfo& gpu) const {
  const WarpgroupRegisters& r = gpu.warpgroup_registers;
  if (warpgroups > 1) return r.most;
  // Warps are distributed over the four parts of a multiprocessor.
  constexpr int parts = kernel::warpgroup_threads / kernel::warp_threads;
  const int warps = (at_once * (threads() / kernel::warp_threads) + parts - 1) / parts;
  return std::min(r.most, r.all / warps / r.step * r.step);
}

WgmmaBlocks WgmmaBlocks::of(int sums_and_scores) {
  const AttentionRegisters& registers = attention_registers;
  if (sums_and_scores <= registers.of_three_blocks) return {1, 3};
  if (sums_and_scores <= registers.of_two_blocks) return {1, 2};
  return {2, 1};
}

int stages_beside(const GpuContext& lowering, const WgmmaBlocks& blocks, std::int64_t stationary,
                  std::int64_t of_stage) {
  const std::int64_t size = 2, left = blocks.shared_bytes(lowering.gpu) - for_barriers;
  const std::int64_t stages =
      std::min<std::int64_t>(lowering.tuned.attention.most, (left - size * stationary) / (size * of_stage));
  return stages < lowering.tuned.attention.least ? 0 : static_cast<int>(stages);
}

WgmmaPlan<WgmmaAttentionTile> plan_wgmma_attention(const AttentionPlan& plan) {
  WgmmaPlan<WgmmaAttentionTile> found{std::nullopt, why_not(plan)};
  if (!found.why_not.empty()) return found;
  const AttentionParts& parts = plan.attention.parts;
  const AttentionRegisters& registers = attention_registers;
  const int sums = WgmmaSums::registers({&parts.outputs[0]}), scores = registers.columns / 2;
  const WgmmaAttentionTile tile{static_cast<int>(*parts.scores[0].depth.value()),
                                static_cast<int>(*parts.outputs[0].depth.value()), registers.columns, 0,
                                WgmmaBlocks::of(sums + scores)};
  return WgmmaPlan<WgmmaAttentionTile>::with_room(tile, [&](const WgmmaBlocks& blocks) {
    const std::int64_t queries = StationaryOperand::elements(blocks.positions(), tile.depth);
    return stages_beside(plan.lowering, blocks, queries, tile.keys() + tile.value_elements());
  });
}

}  // namespace lathe::gpu
