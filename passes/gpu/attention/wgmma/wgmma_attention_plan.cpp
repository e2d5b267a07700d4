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
  if (warpgroups > 1)
    return std::min(r.most, (r.all - r.producer - finishers * finishing) / warpgroups / r.step * r.step);
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

namespace {

/// Blocks and columns of a tile.
struct Shape {
  WgmmaBlocks blocks;
  int columns;
  bool long_rows = false;  ///< only for them
};
/// The preferred ones first.
constexpr Shape shapes[] = {{{3, 1}, 128, true}, {{2, 1}, 128, true}, {{2, 1}, 64, true},
                            {{1, 3}, 64},        {{1, 2}, 64},        {{2, 1}, 64}};

/// Returns an estimate of the registers of a thread other than sums, scores and weights, for tiles of `columns`.
int other_registers(const AttentionPlan& plan, int columns) {
  const ElementwiseProgram& program = plan.attention.program;
  const AttentionRegisters& registers = attention_registers;
  int others = registers.others_of_rows;
  for (int i = 0; i < program.size(); ++i) {
    if ((program.depends[i] >> plan.attention.parts.columns_dim & 1) == 0) continue;
    if (program[i].kind == ElementwiseInstruction::Kind::load) others += registers.of_load;
    if (program[i].kind == ElementwiseInstruction::Kind::random) others += registers.of_random * columns / 64;
  }
  return others;
}

/// Returns whether rows read many columns, and there are blocks of this many rows for all multiprocessors.
bool has_long_rows(const AttentionPlan& plan, int positions) {
  const auto rows = plan.attention.rows.value(), outer = plan.outer().value();
  std::int64_t columns = plan.attention.column_count.value().value_or(0);
  if (plan.attention.bounds.upper) columns /= 2;
  if (columns < plan.lowering.tuned.attention.turn_columns) return false;
  return !rows || !outer || (*rows + positions - 1) / positions * *outer >= plan.lowering.gpu.multiprocessors;
}

}  // namespace

WgmmaPlan<WgmmaAttentionTile> plan_wgmma_attention(const AttentionPlan& plan) {
  WgmmaPlan<WgmmaAttentionTile> found{std::nullopt, why_not(plan)};
  if (!found.why_not.empty()) return found;
  const AttentionParts& parts = plan.attention.parts;
  const int sums = WgmmaSums::registers({&parts.outputs[0]});
  for (const Shape& shape : shapes) {
    WgmmaAttentionTile tile{static_cast<int>(*parts.scores[0].depth.value()),
                            static_cast<int>(*parts.outputs[0].depth.value()), shape.columns, 0, shape.blocks};
    const int scores = tile.columns / 2, weights = scores / 2;
    const int needed = sums + scores + weights + other_registers(plan, tile.columns);
    const bool fits = needed <= shape.blocks.registers(plan.lowering.gpu), is_last = &shape == std::end(shapes) - 1;
    if (!(fits || is_last) || (shape.long_rows && !has_long_rows(plan, shape.blocks.positions()))) continue;
    tile.stages =
        stages_beside(plan.lowering, shape.blocks, StationaryOperand::elements(shape.blocks.positions(), tile.depth),
                      tile.keys() + tile.value_elements());
    if (tile.stages > 0) return {tile, ""};
  }
  return {std::nullopt, "its tiles are too large for shared memory"};
}

}  // namespace lathe::gpu
