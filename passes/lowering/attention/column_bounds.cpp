#include "passes/lowering/attention/column_bounds.h"

#include <algorithm>

#include "passes/lowering/attention/column_comparison.h"
#include "passes/lowering/attention/column_evaluator.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

/// Returns the offsets of all diagonals in comparisons of row and column: column <= row + offset, or column > row +
/// offset.
std::vector<Dim> diagonals(const ElementwiseProgram& program, int row_dim, int column_dim) {
  std::vector<Dim> found;
  const auto add = [&](const Dim& offset) {
    if (std::find(found.begin(), found.end(), offset) == found.end()) found.push_back(offset);
  };
  for (int i = 0; i < program.size(); ++i) {
    const auto comparison = row_column_comparison(program, i, row_dim, column_dim);
    if (!comparison) continue;
    for (const auto& [row, column, offset] : comparison->forms) {
      if (row == 1 && column == -1) add(offset);
      if (row == -1 && column == 1) add(Dim(0) - offset - Dim(1));
    }
  }
  return found;
}

}  // namespace

ColumnBounds find_column_bounds(const ElementwiseProgram& program, int row_dim, int column_dim,
                                const std::vector<int>& results) {
  ColumnBounds bounds;
  for (const ElementwiseStore& store : program.stores)
    if ((program.depends[at(store.value)] >> column_dim & 1) != 0) return bounds;
  std::vector<ColumnSide> sides;
  for (const Dim& offset : diagonals(program, row_dim, column_dim)) {
    for (const bool above : {true, false}) {
      std::optional<Dim>& limit = above ? bounds.upper : bounds.lower;
      if (limit) continue;
      ColumnBounds tried = bounds;
      const ColumnSide side{row_dim, column_dim, above, above ? offset : offset + Dim(1)};
      if (!contributes_nothing(program, side, results, {}, tried)) continue;
      bounds = std::move(tried);
      (above ? bounds.upper : bounds.lower) = side.edge;
      sides.push_back(side);
    }
  }
  if (bounds.upper)
    bounds.inside = decided_comparisons(program, {row_dim, column_dim, false, *bounds.upper + Dim(1)});
  // Try to exempt each score from its bound check. A success replaces the checks by the ones that remain.
  for (int i = 0; i < program.size() && bounds.any(); ++i) {
    if (program[i].kind != Kind::accumulator) continue;
    ColumnBounds tried;
    tried.upper = bounds.upper;
    tried.lower = bounds.lower;
    tried.inside = bounds.inside;
    tried.anything = bounds.anything;
    tried.anything.push_back(i);
    const auto holds = [&](const ColumnSide& side) {
      return contributes_nothing(program, side, results, tried.anything, tried);
    };
    if (std::all_of(sides.begin(), sides.end(), holds)) bounds = std::move(tried);
  }
  for (auto* rows : {&bounds.finite, &bounds.nonzero}) {
    std::sort(rows->begin(), rows->end());
    rows->erase(std::unique(rows->begin(), rows->end()), rows->end());
  }
  return bounds;
}

}  // namespace lathe
