#include "passes/lowering/attention_scratch.h"

#include <algorithm>

namespace lathe {

namespace {
bool in_place(const AttentionOperand& operand, DType dtype) { return operand.plain && operand.dtype() == dtype; }
}  // namespace

/// The width of a matrix as whole vectors; of an unknown one at least as much.
Dim AttentionScratch::rounded(const Dim& width) const {
  const int lanes = sizes_.lanes;
  const auto number = width.value();
  return number ? Dim((*number + lanes - 1) / lanes * lanes) : width.unnamed() + Dim(lanes - 1);
}

ScratchMatrix AttentionScratch::matrix(const Dim& rows, const Dim& width, DType dtype, const char* name) {
  kernel::Builder& b = context_.builder;
  const int id = lowering_.scratch(dtype, rows.unnamed() * rounded(width), name);
  context_.declare(id, dtype, true, true);
  const bool known = width.value().has_value();
  return {context_.buffer(id),
          known ? b.index(*rounded(width).value()) : b.round_up(context_.dim(width), sizes_.lanes)};
}

ScratchMatrix AttentionScratch::slot(DType dtype) {
  return matrix(sizes_.columns + Dim(sizes_.tile_rows), Dim(sizes_.strip_rows), dtype, "strip of scores");
}

void AttentionScratch::give_to(AttentionScore& score) {
  const AttentionParts::Score& part = score.part();
  std::optional<ScratchMatrix> staged;
  if (!in_place(part.columns, score.dtype()))
    staged = matrix(sizes_.columns, part.depth, score.dtype(), "staged columns");
  score.set_scratch(matrix(part.depth, Dim(sizes_.strip_rows), score.dtype(), "packed rows"), staged);
}

void AttentionScratch::give_to(AttentionEnd& end) {
  const AttentionParts::End& part = end.part();
  const DType compute = sizes_.compute;
  const Dim strip(sizes_.strip_rows), &columns = sizes_.columns;
  const Dim positions = (part.over_rows ? columns : sizes_.rows) + Dim(sizes_.tile_rows);
  AttentionEnd::Scratch found{.sums = matrix(positions, part.depth, compute, "sums")};
  const Dim staged = part.over_rows ? strip : columns;
  if (part.pairs)
    found.staged = matrix(staged + Dim(1), part.depth, bf16, "staged operand");
  else if (!in_place(part.other, compute))
    found.staged = matrix(staged, part.depth, compute, "staged operand");
  if (part.divisor) found.divisors = matrix(Dim(1), strip, compute, "divisors");
  if (part.pairs && !part.over_rows) {
    const auto known = columns.value();
    const int most = AttentionEnd::column_block;
    const Dim held = known ? Dim(std::min<std::int64_t>(*known, most)) : Dim(most);
    found.pairs = matrix(held + Dim(3), strip, bf16, "pairs of columns");
  }
  end.set_scratch(found);
}

}  // namespace lathe
