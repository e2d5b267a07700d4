#include "passes/cpu/attention/attention_scratch.h"

#include <algorithm>

namespace lathe::cpu {

namespace {
bool in_place(const AttentionOperand& operand, DType dtype) { return operand.plain && operand.dtype() == dtype; }
}  // namespace

/// Rounds the width of a matrix up to whole vectors. For an unknown width the result is an upper bound.
Dim AttentionScratch::rounded(const Dim& width) const {
  const int lanes = sizes_.lanes;
  const auto number = width.value();
  return number ? Dim((*number + lanes - 1) / lanes * lanes) : width.unnamed() + Dim(lanes - 1);
}

kernel::Buffer AttentionScratch::buffer(const Dim& elements, DType dtype, const char* name) {
  const int id = lowering_.scratch(dtype, elements, name);
  context_.declare(id, dtype, true, true);
  return context_.buffer(id);
}

kernel::Buffer AttentionScratch::tiles(const Dim& rows, const Dim& depth, DType dtype, const char* name) {
  return buffer(tiled_elements(rows, depth, dtype), bf16, name);
}

ScratchMatrix AttentionScratch::matrix(const Dim& rows, const Dim& width, DType dtype, const char* name) {
  return matrix_in(buffer(rows.unnamed() * rounded(width), dtype, name), width);
}

ScratchMatrix AttentionScratch::matrix_in(kernel::Buffer buffer, const Dim& width) {
  kernel::Builder& b = context_.builder;
  const bool known = width.value().has_value();
  return {buffer, known ? b.index(*rounded(width).value()) : b.round_up(context_.dim(width), sizes_.lanes)};
}

ScratchMatrix AttentionScratch::row_slot(DType dtype, int rows) {
  return matrix(Dim(rows), sizes_.columns, dtype, "rows of scores");
}

ScratchMatrix AttentionScratch::decode_rows(const AttentionParts::Score& score, int rows) {
  return matrix(Dim(rows), score.depth, sizes_.compute, "rows");
}

ScratchMatrix AttentionScratch::sums(const AttentionParts::OutputProduct& part) {
  return matrix(sizes_.rows, part.depth, sizes_.compute, "sums");
}

ScratchMatrix AttentionScratch::divisors(int rows) { return matrix(Dim(1), Dim(rows), sizes_.compute, "divisors"); }

SplitBf16Sums::Scratch AttentionScratch::split_sums() {
  const Dim elements(SplitBf16Sums::side * SplitBf16Sums::side);
  const kernel::Buffer sums = buffer(elements, f32, "sums by fma"), left = buffer(elements, f32, "left of them");
  return {sums, left, buffer(elements, f32, "right of them")};
}

ScratchMatrix AttentionScratch::slot(DType dtype) {
  return matrix(sizes_.columns + Dim(sizes_.tile_rows), Dim(sizes_.block_rows), dtype, "row block of scores");
}

void AttentionScratch::give_to(AttentionScore& score) {
  const AttentionParts::Score& part = score.part();
  if (TiledScore* tiled = score.tiled()) return give_to(*tiled, part);
  std::optional<ScratchMatrix> staged;
  if (!in_place(part.columns, score.dtype()))
    staged = matrix(sizes_.columns, part.depth, score.dtype(), "staged columns");
  score.set_scratch(matrix(part.depth, Dim(sizes_.block_rows), score.dtype(), "packed rows"), staged);
}

void AttentionScratch::give_to(TiledScore& score, const AttentionParts::Score& part) {
  const kernel::Buffer rows = tiles(Dim(sizes_.block_rows), part.depth, score.dtype(), "packed rows");
  score.set_scratch(rows, tiles(sizes_.columns, part.depth, score.dtype(), "packed columns"), exact_);
}

/// Sums may extend past the last position by a block; their depth is rounded up to whole blocks.
void AttentionScratch::give_to(TiledOutput& tiled, AttentionOutput& output) {
  const AttentionParts::OutputProduct& part = output.part();
  const Dim row_block(sizes_.block_rows), depth(TiledOutput::whole_depth(part)), &columns = sizes_.columns;
  const Dim positions = (part.over_rows ? columns : sizes_.rows) + Dim(tile_block);
  const DType dtype = tiled.dtype();
  TiledOutput::Scratch found{
      .sums = matrix(positions, depth, f32, "sums"),
      .other = tiles(part.over_rows ? row_block : columns, depth, dtype, "packed other operand")};
  if (tiled.packs_values())
    found.values =
        tiles(part.over_rows ? row_block : Dim(tiled.column_block()), Dim(tile_block), dtype, "packed values");
  if (!part.over_rows) {
    found.transposed = matrix(depth, row_block, f32, "transposed sums");
    found.columns = context_.builder.round_up(context_.dim(columns), tile_block);
  }
  if (tiled.split_bf16()) found.exact = exact_;
  if (tiled.split_bf16() && part.over_rows)
    found.block = buffer(Dim(tile_block * tile_block), f32, "sums of a block");
  tiled.set_scratch(found);
  AttentionOutput::Scratch of_output{.sums = found.sums};
  if (part.divisor) of_output.divisors = matrix(Dim(1), row_block, f32, "divisors");
  output.set_scratch(of_output);
}

void AttentionScratch::give_to(AttentionOutput& output) {
  if (TiledOutput* tiled = output.tiled()) return give_to(*tiled, output);
  const AttentionParts::OutputProduct& part = output.part();
  const DType compute = sizes_.compute;
  const Dim row_block(sizes_.block_rows), &columns = sizes_.columns;
  const Dim positions = (part.over_rows ? columns : sizes_.rows) + Dim(sizes_.tile_rows);
  AttentionOutput::Scratch found{.sums = matrix(positions, part.depth, compute, "sums")};
  const Dim staged = part.over_rows ? row_block : columns;
  if (part.pairs)
    found.staged = matrix(staged + Dim(1), part.depth, bf16, "staged operand");
  else if (!in_place(part.other, compute))
    found.staged = matrix(staged, part.depth, compute, "staged operand");
  if (part.divisor) found.divisors = matrix(Dim(1), row_block, compute, "divisors");
  if (part.pairs && !part.over_rows) {
    const auto known = columns.value();
    const int most = output.column_block();
    const Dim held = known ? Dim(std::min<std::int64_t>(*known, most)) : Dim(most);
    found.pairs = matrix(held + Dim(3), row_block, bf16, "pairs of columns");
  }
  output.set_scratch(found);
}

}  // namespace lathe::cpu
