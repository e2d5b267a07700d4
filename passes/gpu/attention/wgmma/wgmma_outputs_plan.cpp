#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/attention_known_rows.h"
#include "passes/gpu/attention/wgmma/wgmma_outputs.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"

namespace lathe::gpu {

namespace {

constexpr std::size_t most_scores = 2, most_outputs = 2;

std::int64_t known(const Dim& depth) { return depth.value().value_or(0); }

/// Whether the operand's rows are rows of swizzled tiles. A tile can be processed in parts only then.
bool are_rows(const AttentionOperand& operand, DType held) { return axis_of_chunks(operand, held) == LaneAxis::k; }

/// Whether the operand is the same for all outer dims that a block iterates over.
bool stationary_operand(const AttentionOperand& operand, const AttentionParts& parts) {
  const std::uint64_t depends = operand.code.program.depends[operand.code.result];
  for (std::size_t d = 0; d < parts.outer.size(); ++d) {
    const bool sequential =
        std::find(parts.result_dims.begin(), parts.result_dims.end(), parts.outer[d]) == parts.result_dims.end();
    if (sequential && (depends >> operand.outer[d] & 1) != 0) return false;
  }
  return true;
}

std::string why_not(const AttentionPlan& plan, const WgmmaOutputParts& parts) {
  const AttentionProgram& attention = plan.attention;
  const GpuInfo& gpu = plan.lowering.gpu;
  const bool over_rows = parts.over_rows;
  const char* const over = over_rows ? "rows" : "columns";
  if (!plan.tile.tensor_cores()) return "its products are not of bf16 or f16 alone";
  if (std::any_of(parts.outputs.begin(), parts.outputs.end(),
                  [](const auto* output) { return output->divisor.has_value(); }))
    return "its sums are divided by what rows reduce to";
  if (parts.scores.size() > most_scores || parts.outputs.size() > most_outputs)
    return fmt::format("{} products make its scores, {} sum over the {}, where registers have room for {} and {}",
                       parts.scores.size(), parts.outputs.size(), over, most_scores, most_outputs);
  const auto unknown = [](const auto* part) { return known(part->depth) < 1; };
  if (std::any_of(parts.outputs.begin(), parts.outputs.end(), unknown) ||
      std::any_of(parts.scores.begin(), parts.scores.end(), unknown))
    return "a depth that is not known";
  std::string depths;
  for (const auto* output : parts.outputs)
    depths += fmt::format("{}{}", depths.empty() ? "" : ", ", output->depth.to_string());
  const int sums = WgmmaSums::registers(parts.outputs);
  if (sums > attention_registers.most_sums)
    return fmt::format("sums over {} of {} elements, where registers have room for {} in all", over, depths,
                       2 * attention_registers.most_sums);
  const std::string streamed = over_rows ? "its queries, or its result's gradient, are " : "its keys or values are ";
  for (const AttentionOperand* operand : parts.streamed) {
    if (!are_boxes(gpu, *operand, plan.tile.held, false)) return streamed + "computed, or no boxes that TMA copies";
    if (sums > attention_registers.sums_beside_whole_tile && !are_rows(*operand, plan.tile.held))
      return streamed + "not contiguous along the depth";
  }
  for (const auto* score : parts.scores)
    if (over_rows && !stationary_operand(score->columns, attention.parts))
      return "heads that share a gradient have keys or values of their own";
  const Dim& stationary = over_rows ? attention.column_count : attention.rows;
  if (const auto count = stationary.value(); count && *count <= kernel::wgmma_rows)
    return fmt::format("it has {} {}", *count, over_rows ? "columns" : "rows");
  return "";
}

}  // namespace

std::size_t WgmmaOutputParts::streamed_number(const AttentionOperand& operand) const {
  const auto same = [&](const AttentionOperand* one) { return same_elements(*one, operand); };
  return static_cast<std::size_t>(std::find_if(streamed.begin(), streamed.end(), same) - streamed.begin());
}

std::vector<int> WgmmaOutputParts::values() const {
  std::vector<int> found;
  for (const auto* output : outputs) found.push_back(output->value);
  return found;
}

WgmmaOutputParts wgmma_output_parts(const AttentionPlan& plan, bool over_rows) {
  WgmmaOutputParts parts{over_rows, {}, {}, {}};
  const auto stream = [&](const AttentionOperand& operand) {
    if (parts.streamed_number(operand) == parts.streamed.size()) parts.streamed.push_back(&operand);
  };
  for (const AttentionParts::OutputProduct& output : plan.attention.parts.outputs)
    if (output.over_rows == over_rows) {
      parts.outputs.push_back(&output);
      stream(output.other);
    }
  const std::vector<int> needed = needed_of_rows(plan, parts.values()).scores;
  for (const AttentionParts::Score& score : plan.attention.parts.scores)
    if (std::find(needed.begin(), needed.end(), score.value) != needed.end()) {
      parts.scores.push_back(&score);
      stream(parts.streamed_operand(score));
    }
  return parts;
}

WgmmaPlan<WgmmaOutputTile> plan_wgmma_outputs(const AttentionPlan& plan, bool over_rows) {
  const WgmmaOutputParts parts = wgmma_output_parts(plan, over_rows);
  if (parts.outputs.empty()) return {};
  WgmmaPlan<WgmmaOutputTile> found{std::nullopt, why_not(plan, parts)};
  if (!found.why_not.empty()) return found;
  const int sums = WgmmaSums::registers(parts.outputs), scores = static_cast<int>(parts.scores.size());
  // A second output matmul has its own weights.
  const int weights = static_cast<int>(parts.outputs.size() - 1) * WgmmaOutputTile::streamed / 4;
  const auto blocks_with = [&](int at_once) { return WgmmaBlocks::of(sums + scores * at_once / 2 + weights); };
  const int whole = WgmmaOutputTile::streamed, half = whole / 2;
  const bool rows = std::all_of(parts.streamed.begin(), parts.streamed.end(),
                                [&](const auto* operand) { return are_rows(*operand, plan.tile.held); });
  const bool halves = rows && blocks_with(half).at_once > blocks_with(whole).at_once;
  WgmmaOutputTile tile{halves || sums > attention_registers.sums_beside_whole_tile ? half : whole, 0, {}};
  tile.blocks = blocks_with(tile.at_once);
  return WgmmaPlan<WgmmaOutputTile>::with_room(tile, [&](const WgmmaBlocks& blocks) {
    std::int64_t stationary = 0, of_stage = 0;
    for (const auto* score : parts.scores)
      stationary += StationaryOperand::elements(blocks.positions(), static_cast<int>(known(score->depth)));
    for (const AttentionOperand* operand : parts.streamed)
      of_stage += StationaryOperand::elements(WgmmaOutputTile::streamed, static_cast<int>(known(operand->size)));
    return stages_beside(plan.lowering, blocks, stationary, of_stage);
  });
}

}  // namespace lathe::gpu
