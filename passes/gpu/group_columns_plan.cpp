#include <algorithm>

#include <fmt/core.h>

#include "passes/gpu/attention_known_rows.h"
#include "passes/gpu/group_columns.h"
#include "passes/gpu/group_sums.h"

namespace lathe::gpu {

namespace {

using Parts = GroupColumnsParts;
using Tile = GroupColumnsTile;

constexpr std::size_t most_scores = 2, most_ends = 2;
/// Registers of a thread for the sums of all products, and those beside which a whole tile's scores find room too.
constexpr int most_sums = 128, sums_beside_whole_tile = 64;

std::int64_t known(const Dim& depth) { return depth.value().value_or(0); }

/// Of a tile that is taken in parts the rows must be lines of panels, of which some can be left out.
bool are_lines(const AttentionOperand& operand, DType held) {
  return axis_of_pieces(operand, held) == schedule::LaneAxis::k;
}

/// Whether it is the same for all outer dims that a block goes through.
bool rests(const AttentionOperand& operand, const AttentionParts& parts) {
  const std::uint64_t depends = operand.code.program.depends[static_cast<std::size_t>(operand.code.result)];
  for (std::size_t d = 0; d < parts.outer.size(); ++d) {
    const bool serial =
        std::find(parts.result_dims.begin(), parts.result_dims.end(), parts.outer[d]) == parts.result_dims.end();
    if (serial && (depends >> operand.outer[d] & 1) != 0) return false;
  }
  return true;
}

std::string why_not(const AttentionPlan& plan, const Parts& parts) {
  if (!plan.tile.tensor_cores()) return "its products are not of bf16 or f16 alone";
  if (parts.scores.size() > most_scores || parts.ends.size() > most_ends)
    return fmt::format("{} products make its scores, {} sum over the rows, where registers have room for {} and {}",
                       parts.scores.size(), parts.ends.size(), most_scores, most_ends);
  std::string depths;
  for (const auto* end : parts.ends)
    depths += fmt::format("{}{}", depths.empty() ? "" : ", ", end->depth.to_string());
  const auto unknown = [](const auto* part) { return known(part->depth) < 1; };
  if (std::any_of(parts.ends.begin(), parts.ends.end(), unknown) ||
      std::any_of(parts.scores.begin(), parts.scores.end(), unknown))
    return "a depth that is not known";
  if (GroupSums::registers(parts.ends) > most_sums)
    return fmt::format("sums over rows of {} elements, where registers have room for {} in all", depths,
                       2 * most_sums);
  for (const AttentionOperand* operand : parts.passing)
    if (!are_boxes(*operand, plan.tile.held, false))
      return "its queries, or its result's gradient, are computed, or no boxes that TMA copies";
  if (GroupSums::registers(parts.ends) > sums_beside_whole_tile &&
      !std::all_of(parts.passing.begin(), parts.passing.end(),
                   [&](const AttentionOperand* operand) { return are_lines(*operand, plan.tile.held); }))
    return "its queries, or its result's gradient, are not contiguous along the depth";
  for (const auto* score : parts.scores)
    if (!rests(score->columns, plan.attention.parts))
      return "heads that share a gradient have keys or values of their own";
  if (const auto columns = plan.attention.column_count.value(); columns && *columns <= kernel::group_rows)
    return fmt::format("it has {} columns", *columns);
  return "";
}

}  // namespace

std::size_t Parts::passing_number(const AttentionOperand& operand) const {
  const auto same = [&](const AttentionOperand* one) { return same_elements(*one, operand); };
  return static_cast<std::size_t>(std::find_if(passing.begin(), passing.end(), same) - passing.begin());
}

Parts group_columns_parts(const AttentionPlan& plan) {
  Parts parts;
  const auto pass = [&](const AttentionOperand& operand) {
    if (parts.passing_number(operand) == parts.passing.size()) parts.passing.push_back(&operand);
  };
  const std::vector<int> needed = needed_of_rows(plan, summed_over_rows(plan)).scores;
  for (const AttentionParts::Score& score : plan.attention.parts.scores)
    if (std::find(needed.begin(), needed.end(), score.value) != needed.end()) {
      parts.scores.push_back(&score);
      pass(score.rows);
    }
  for (const AttentionParts::End& end : plan.attention.parts.ends)
    if (end.over_rows) {
      parts.ends.push_back(&end);
      pass(end.other);
    }
  return parts;
}

GroupPlan<Tile> plan_group_columns(const AttentionPlan& plan) {
  const Parts parts = group_columns_parts(plan);
  GroupPlan<Tile> found{std::nullopt, why_not(plan, parts)};
  if (!found.why_not.empty()) return found;
  std::int64_t resting = 0, of_stage = 0;
  for (const auto* score : parts.scores)
    resting += RestingOperand::elements(Tile::columns, static_cast<int>(known(score->depth)));
  for (const AttentionOperand* operand : parts.passing)
    of_stage += RestingOperand::elements(Tile::rows, static_cast<int>(known(operand->size)));
  const int stages = stages_beside(resting, of_stage);
  if (stages == 0)
    found.why_not = "its tiles are too large for shared memory";
  else
    found.tile =
        Tile{GroupSums::registers(parts.ends) > sums_beside_whole_tile ? Tile::rows / 2 : Tile::rows, stages};
  return found;
}

}  // namespace lathe::gpu
