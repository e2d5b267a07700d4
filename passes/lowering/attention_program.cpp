#include "passes/lowering/attention_program.h"

#include "passes/lowering/softmax_divisor.h"

namespace lathe {

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
  return found;
}

}  // namespace lathe
