#include "passes/lowering/column_bounds.h"

#include <algorithm>
#include <cmath>

#include "passes/lowering/column_evaluator.h"

namespace lathe {

using Kind = PointInstruction::Kind;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The diagonals that comparisons of row and column speak of: offset where one asks for column <= row + offset.
std::vector<Dim> diagonals(const PointProgram& program, int row_dim, int column_dim) {
  std::vector<Dim> found;
  const auto coefficient = [](const PointInstruction& i, int d) {
    return i.form.coefficients[at(d)].value().value_or(0);
  };
  for (const PointInstruction& i : program.code) {
    if (i.kind != Kind::scalar || (i.op != ScalarOp::lt && i.op != ScalarOp::le)) continue;
    const PointInstruction &a = program[i.args[0]], &b = program[i.args[1]];
    const Dim strict(i.op == ScalarOp::lt ? 1 : 0);
    const auto add = [&](const Dim& offset) {
      if (std::find(found.begin(), found.end(), offset) == found.end()) found.push_back(offset);
    };
    std::vector<std::pair<const PointInstruction*, Dim>> sides;
    for (const PointInstruction* side : {&a, &b}) {
      Dim offset(0);
      const PointInstruction* index = side;
      while (index->kind == Kind::scalar && !index->args.empty()) {
        const PointInstruction* next = &program[index->args[0]];
        if (index->args.size() == 2) {
          const PointInstruction& second = program[index->args[1]];
          if (second.kind != Kind::constant || std::fabs(second.value) > 1e15) break;
          const auto number = static_cast<std::int64_t>(second.value);
          if (index->op == ScalarOp::add)
            offset = offset + Dim(number);
          else if (index->op == ScalarOp::sub)
            offset = offset - Dim(number);
          else
            break;
        } else if (index->op != ScalarOp::cast) {
          break;
        }
        index = next;
      }
      if (index->kind == Kind::index) sides.emplace_back(index, offset + index->form.offset);
    }
    if (sides.size() != 2) continue;
    const auto& [left, left_offset] = sides[0];
    const auto& [right, right_offset] = sides[1];
    const Dim offset = right_offset - left_offset - strict;
    if (coefficient(*left, column_dim) == 1 && coefficient(*right, row_dim) == 1) add(offset);
    if (coefficient(*left, row_dim) == 1 && coefficient(*right, column_dim) == 1) add(Dim(0) - offset - Dim(1));
  }
  return found;
}

}  // namespace

ColumnBounds find_column_bounds(const PointProgram& program, int row_dim, int column_dim,
                                const std::vector<int>& results) {
  ColumnBounds bounds;
  for (const PointStore& store : program.stores)
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
  // Scores that may be anything are not looked at; the checks are those that are left then.
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
