#include "passes/lowering/attention/attention_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "passes/fusion/attention/attention_cost.h"
#include "passes/lowering/attention/softmax_divisor.h"

namespace lathe {

namespace {

/// The average number of columns per row, if known.
std::optional<std::int64_t> columns_of_row(const AttentionProgram& attention) {
  const ColumnBounds& bounds = attention.bounds;
  if (bounds.upper && bounds.lower) return (*bounds.upper - *bounds.lower + Dim(1)).value();
  const auto all = attention.column_count.value();
  return all && bounds.any() ? *all / 2 : all;
}

/// Returns why the matmuls do not use the CPU's tile_mma, or "" if they do.
std::string why_not_tiled(const AttentionProgram& attention) {
  const AttentionParts& parts = attention.parts;
  if (parts.compute != f32) return fmt::format("it computes in {}", name(parts.compute));
  if (parts.scores.empty()) return "it makes no scores";
  const bool is_bf16 = parts.scores[0].is_bf16;
  const DType dtype = is_bf16 ? bf16 : f32;
  std::int64_t least_depth = parts.scores[0].rows.size.value().value_or(0);
  const auto fits = [&](const AttentionOperand& operand) {
    least_depth = std::min(least_depth, operand.size.value().value_or(0));
    return operand.dtype() == dtype;
  };
  const bool all_fit = std::all_of(parts.scores.begin(), parts.scores.end(),
                                   [&](const auto& score) { return fits(score.rows) && fits(score.columns); }) &&
                       std::all_of(parts.outputs.begin(), parts.outputs.end(), [&](const auto& output) {
                         return output.is_bf16 == is_bf16 && fits(output.other);
                       });
  if (!all_fit) return fmt::format("not all operands of its products are {}", name(dtype));
  return why_not_by_tiles(
      dtype, {attention.rows.value(), attention.column_count.value(), columns_of_row(attention), least_depth});
}

/// If a store writes a row value once per column, such as an expanded row sum, adds a copy that varies along the
/// columns.
void vary_what_columns_keep(ElementwiseProgram& program, int columns_dim) {
  const std::uint64_t columns = std::uint64_t{1} << columns_dim;
  for (ElementwiseStore& store : program.stores) {
    const auto value = static_cast<std::size_t>(store.value);
    if ((program.depends[value] & columns) != 0) continue;
    if (store.form.coefficients[columns_dim].is(0)) continue;
    const std::uint64_t depends = program.depends[value] | columns;
    store.value = program.size();
    program.code.push_back({.kind = ElementwiseInstruction::Kind::scalar,
                            .dtype = program.code[value].dtype,
                            .op = ScalarOp::cast,
                            .args = {static_cast<int>(value)},
                            .node = store.node});
    program.depends.push_back(depends);
  }
}

}  // namespace

std::vector<int> AttentionProgram::results() const {
  std::vector<int> found;
  for (const AttentionParts::OutputProduct& output : parts.outputs) found.push_back(output.value);
  return found;
}

Dim AttentionProgram::flops(const Dim& depths) const {
  const Dim pairs = bounds.upper && bounds.lower ? Dim(2) * rows * (*bounds.upper - *bounds.lower + Dim(1))
                    : bounds.any()               ? rows * column_count
                                                 : Dim(2) * rows * column_count;
  return parts.parallel * parts.accumulated * parts.sequential * pairs * depths;
}

std::vector<MissedPath> missed_tiles(const AttentionProgram& attention) {
  if (attention.why_not_tiled.empty()) return {};
  const auto& scores = attention.parts.scores;
  const bool is_bf16 = !scores.empty() && scores[0].is_bf16;
  return {{is_bf16 ? Multiplier::tile_mma : Multiplier::split_bf16, attention.why_not_tiled}};
}

AttentionProgram attention_program(const LoweringContext& lowering, const Region& region, OutputProducts wanted) {
  return attention_program(lowering, region, region_program(lowering.graph, lowering.plan, region), wanted);
}

AttentionProgram attention_program(const LoweringContext& lowering, const Region& region, ElementwiseProgram program,
                                   OutputProducts wanted) {
  AttentionProgram found;
  found.program = std::move(program);
  found.parts = parts_with(attention_parts(lowering, region, found.program), wanted);
  if (wanted == OutputProducts::over_rows) found.program.stores.clear();  // the other kernel stores everything
  vary_what_columns_keep(found.program, found.parts.columns_dim);
  for (AttentionParts::OutputProduct& output : found.parts.outputs) {
    if (found.parts.sums_over_rows()) break;
    const auto taken = take_out_divisor(found.program, output.value, found.columns());
    if (!taken) continue;
    output.value = taken->value;
    output.divisor = taken->divisor;
  }
  found.rows = region.domain[found.parts.row_dim].unnamed();
  found.column_count = region.domain[found.parts.columns_dim].unnamed();
  found.bounds = find_column_bounds(found.program, found.parts.row_dim, found.parts.columns_dim, found.results());
  if (const CpuInfo* cpu = lowering.if_cpu(); cpu && cpu->tiles) {
    found.why_not_tiled = why_not_tiled(found);
    found.tiled = found.why_not_tiled.empty();
  }
  return found;
}

}  // namespace lathe
