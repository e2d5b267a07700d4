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

namespace {
/// Returns the number of the first element that fulfils a condition, or the number of elements.
template <class Elements, class Is>
std::size_t number_of(const Elements& elements, const Is& is) {
  return static_cast<std::size_t>(std::find_if(elements.begin(), elements.end(), is) - elements.begin());
}
}  // namespace

std::size_t WgmmaOutputParts::streamed_number(const AttentionOperand& operand) const {
  return number_of(streamed, [&](const AttentionOperand* one) { return same_elements(*one, operand); });
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

bool are_whole_tiles(const AttentionPlan& plan, int rows) {
  const auto whole = [](const Dim& count, int tile) { return count.value() && *count.value() % tile == 0; };
  const AttentionProgram& attention = plan.attention;
  return attention.bounds.inside.empty() && whole(attention.rows, rows) &&
         whole(attention.column_count, kernel::wgmma_rows);
}

WgmmaGradientParts wgmma_gradient_parts(const AttentionPlan& plan) {
  WgmmaGradientParts found{wgmma_output_parts(plan, true), ""};
  WgmmaOutputParts& parts = found.parts;
  const auto because = [&](const char* why) { return WgmmaGradientParts{parts, why}; };
  for (const AttentionParts::OutputProduct& output : plan.attention.parts.outputs) {
    if (output.over_rows) continue;
    if (parts.ordered) return because("two products sum over the columns");
    parts.ordered = &output;
  }
  if (!parts.ordered || parts.outputs.empty()) return because("no products sum over both rows and columns");
  if (parts.ordered->divisor) return because("its sums over columns are divided by what rows reduce to");
  const auto weights = [&](const auto* output) { return output->value == parts.ordered->value; };
  const auto columns = [&](const auto* score) { return same_elements(score->columns, parts.ordered->other); };
  parts.ordered_weights = number_of(parts.outputs, weights), parts.ordered_score = number_of(parts.scores, columns);
  if (parts.ordered_weights == parts.outputs.size())
    return because("the sums over columns have weights of their own");
  if (parts.ordered_score == parts.scores.size()) return because("the sums over columns read no operand of a score");
  return found;
}

namespace {

/// Divides the sums over columns of a tile between the two warpgroups: by rows, or by depth. Returns why it cannot.
std::string divide_ordered(const WgmmaOutputParts& parts, WgmmaOutputTile& tile) {
  const std::int64_t depth = known(parts.ordered->depth);
  if (depth < 1 || depth > kernel::wgmma_columns)
    return fmt::format("sums over columns of {} elements, where registers have room for {}",
                       parts.ordered->depth.to_string(), int{kernel::wgmma_columns});
  tile.ordered_lanes = WgmmaSums::lanes(static_cast<int>(std::min<std::int64_t>(depth, kernel::swizzle_side)))[0];
  if (depth > kernel::swizzle_side) return "";
  tile.rows = 2 * WgmmaOutputTile::streamed;
  const auto is_deep = [](const auto* operand) { return known(operand->size) > kernel::swizzle_side; };
  return std::any_of(parts.streamed.begin(), parts.streamed.end(), is_deep)
             ? "its sums over columns are less deep than its values"
             : "";
}

}  // namespace

namespace {

/// Returns a text if there are known to be fewer blocks than multiprocessors: two kernels have more and smaller ones.
std::string few_blocks(const AttentionPlan& plan, const WgmmaOutputTile& tile) {
  const auto columns = plan.attention.column_count.value(), outer = plan.attention.parts.parallel.value();
  if (!columns || !outer) return "";
  const std::int64_t blocks = (*columns + tile.blocks.positions() - 1) / tile.blocks.positions() * *outer;
  const int multiprocessors = plan.lowering.gpu.multiprocessors;
  return blocks < multiprocessors ? fmt::format("{} blocks for {} multiprocessors", blocks, multiprocessors) : "";
}

/// Returns an estimate of the registers of a thread that multiplies `at_once` rows at a time.
int gradient_registers(const AttentionPlan& plan, const WgmmaOutputParts& parts, const WgmmaOutputTile& tile) {
  const int at_once = tile.at_once;
  const ElementwiseProgram& program = plan.attention.program;
  const NeededOfRows needed = needed_of_rows(plan, parts.values());
  const AttentionRegisters& registers = attention_registers;
  const bool is_masked = !plan.attention.column_count.value();
  int found = WgmmaSums::registers(parts.outputs) + static_cast<int>(parts.scores.size()) * at_once / 2;
  found += are_whole_tiles(plan, tile.rows) ? registers.others_of_whole_tiles : registers.others;
  for (int i = 0; i < program.size(); ++i) {
    if (!needed.all[i] || (program.depends[i] >> plan.attention.parts.columns_dim & 1) == 0) continue;
    using Kind = ElementwiseInstruction::Kind;
    if (program[i].kind == Kind::load && is_masked) found += registers.of_masked_load;
    if (program[i].kind == Kind::random) found += registers.of_random * at_once / WgmmaOutputTile::streamed;
  }
  return found;
}

}  // namespace

namespace {

/// Chooses the registers of the threads that add to memory and the rows that the others multiply at a time: first as
/// many as possible of both, then fewer registers, then fewer rows. Returns why none fit.
std::string divide_registers(const AttentionPlan& plan, const WgmmaOutputParts& parts, WgmmaOutputTile& tile) {
  const bool rows = std::all_of(parts.streamed.begin(), parts.streamed.end(),
                                [&](const auto* operand) { return are_rows(*operand, plan.tile.held); });
  const AttentionRegisters& registers = attention_registers;
  int needed = 0, available = 0;
  for (const int part : {1, 2})
    for (const int finishing : {registers.finishing, registers.least_finishing}) {
      // The rank of a block depends on the rows of a window, which takes the threads that add more registers.
      if ((part > 1 && !rows) || (plan.attention.bounds.lower && finishing < registers.finishing)) continue;
      tile.at_once = WgmmaOutputTile::streamed / part, tile.blocks.finishing = finishing;
      needed = gradient_registers(plan, parts, tile), available = tile.blocks.registers(plan.lowering.gpu);
      if (needed <= available) return "";
    }
  return fmt::format("a thread needs about {} registers, and has {}", needed, available);
}

}  // namespace

WgmmaPlan<WgmmaOutputTile> plan_wgmma_gradients(const AttentionPlan& plan) {
  const WgmmaGradientParts all = wgmma_gradient_parts(plan);
  const WgmmaOutputParts& parts = all.parts;
  WgmmaPlan<WgmmaOutputTile> found{std::nullopt, all.why_not};
  if (found.why_not.empty()) found.why_not = why_not(plan, parts);
  WgmmaOutputTile tile{WgmmaOutputTile::streamed, 0, {.warpgroups = 2, .at_once = 1, .finishers = 1}};
  if (found.why_not.empty()) found.why_not = divide_ordered(parts, tile);
  if (found.why_not.empty()) found.why_not = few_blocks(plan, tile);
  if (!found.why_not.empty()) return found;
  if (found.why_not = divide_registers(plan, parts, tile); !found.why_not.empty()) return found;
  std::int64_t memory = 2 * std::int64_t{tile.rows} * tile.blocks.positions(), of_stage = 0;  // weights of two tiles
  memory += std::int64_t{tile.blocks.consumers()} * tile.ordered_lanes * 2;                   // f32
  for (const auto* score : parts.scores)
    memory += StationaryOperand::elements(tile.blocks.positions(), static_cast<int>(known(score->depth)));
  for (const AttentionOperand* operand : parts.streamed)
    of_stage += StationaryOperand::elements(tile.rows, static_cast<int>(known(operand->size)));
  tile.stages = stages_beside(plan.lowering, tile.blocks, memory, of_stage);
  if (tile.stages == 0) return {std::nullopt, "its tiles are too large for shared memory"};
  return {tile, ""};
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
