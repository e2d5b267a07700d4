#include "passes/lowering/attention_program.h"

#include <algorithm>
#include <optional>

#include "passes/lowering/softmax_divisor.h"

namespace lathe {

namespace {

constexpr std::int64_t least_depth = 32, least_rows = 128, least_columns = 160;

/// How many columns a row looks at, where that is known.
std::optional<std::int64_t> columns_of_row(const AttentionProgram& attention) {
  const ColumnBounds& bounds = attention.bounds;
  if (bounds.upper && bounds.lower) return (*bounds.upper - *bounds.lower + Dim(1)).value();
  const auto all = attention.column_count.value();
  return all && bounds.any() ? *all / 2 : all;
}

bool is_sliced(const AttentionProgram& attention, const VectorTarget& target) {
  const AttentionParts& parts = attention.parts;
  const auto fits = [](const AttentionOperand& operand) {
    return operand.dtype() == f32 && operand.size.value().value_or(0) >= least_depth;
  };
  return target.tiles && target.bits == 512 && parts.compute == f32 &&
         attention.rows.value().value_or(least_rows) >= least_rows &&
         columns_of_row(attention).value_or(least_columns) >= least_columns &&
         std::all_of(parts.scores.begin(), parts.scores.end(),
                     [&](const auto& score) { return fits(score.rows) && fits(score.columns); }) &&
         std::all_of(parts.ends.begin(), parts.ends.end(), [&](const auto& end) { return fits(end.other); });
}

}  // namespace

std::vector<int> AttentionProgram::results() const {
  std::vector<int> found;
  for (const AttentionParts::End& end : parts.ends) found.push_back(end.value);
  return found;
}

Dim AttentionProgram::flops(const Dim& depths) const {
  const Dim pairs = bounds.upper && bounds.lower ? Dim(2) * rows * (*bounds.upper - *bounds.lower + Dim(1))
                    : bounds.any()               ? rows * column_count
                                                 : Dim(2) * rows * column_count;
  return parts.parallel * parts.repeated * parts.serial * pairs * depths;
}

AttentionProgram attention_program(const LoweringContext& lowering, const Region& region, Ends ends) {
  return attention_program(lowering, region, region_program(lowering.graph, lowering.plan, region.parts[0]), ends);
}

AttentionProgram attention_program(const LoweringContext& lowering, const Region& region, PointProgram program,
                                   Ends ends) {
  AttentionProgram found;
  found.program = std::move(program);
  found.parts = parts_with(attention_parts(lowering, region, found.program), ends);
  if (ends == Ends::over_rows) found.program.stores.clear();  // the other kernel stores it all
  for (AttentionParts::End& end : found.parts.ends) {
    if (found.parts.sums_over_rows()) break;
    const auto taken = take_out_divisor(found.program, end.value, found.columns());
    if (!taken) continue;
    end.value = taken->value;
    end.divisor = taken->divisor;
  }
  found.rows = region.domain[found.parts.row_dim].unnamed();
  found.column_count = region.domain[found.parts.columns_dim].unnamed();
  found.bounds = find_column_bounds(found.program, found.parts.row_dim, found.parts.columns_dim, found.results());
  found.sliced = is_sliced(found, lowering.target);
  return found;
}

}  // namespace lathe
