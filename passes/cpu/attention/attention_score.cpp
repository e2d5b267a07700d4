#include "passes/cpu/attention/attention_score.h"

#include "passes/cpu/gemm/pack/gemm_pack.h"

namespace lathe::cpu {

using kernel::Value;

AttentionScore::AttentionScore(KernelContext& context, const CpuContext& lowering, const AttentionParts::Score& part,
                               const RegisterTile& tile, bool tiled)
    : context_(context),
      b_(context.builder),
      part_(part),
      tile_(tile),
      rows_(context, lowering, part.rows, tile.compute),
      columns_(context, lowering, part.columns, tile.compute) {
  if (tiled) tiled_.emplace(context, part_, rows_, columns_);
}

void AttentionScore::set_scratch(ScratchMatrix packed_rows, std::optional<ScratchMatrix> staged_columns) {
  packed_rows_ = packed_rows;
  staged_columns_ = staged_columns;
}

void AttentionScore::stage_columns(Value outer, Value columns) {
  if (tiled_) return tiled_->stage_columns(outer, columns);
  if (staged_columns_) copy_to(columns_, *staged_columns_, outer, b_.index(0), columns, tile_.lanes);
}

void AttentionScore::pack_rows(const RowBlockPosition& row_block, int vectors, Value rows) {
  if (tiled_) return tiled_->pack_rows(row_block, vectors, rows);
  using Operands = GemmTile::Operands;
  const GemmTile gemm{
      .compute = tile_.compute, .lanes = tile_.lanes, .operands = part_.pairs ? Operands::pairs : Operands::plain};
  const LoadOperand load = rows_.callback();
  const Value depth = context_.dim(part_.depth);
  const MicroPanelSource from{.batch = row_block.outer,
                              .row = row_block.row,
                              .rows = rows,
                              .k0 = b_.index(0),
                              .depth = steps_of_k(b_, gemm, depth),
                              .k = depth,
                              .width = vectors * tile_.lanes,
                              .axis = rows_.axis(),
                              .load = &load};
  emit_pack_micro_panel(b_, gemm, from, {.buffer = packed_rows_.buffer, .base = b_.index(0)});
}

void AttentionScore::multiply(const ScratchMatrix& slot, const RowBlockPosition& row_block, int vectors, Value rows,
                              Value columns, const kernel::Builder::Body& prefetch) {
  if (tiled_) return tiled_->multiply(slot, row_block, vectors, rows, columns, prefetch);
  tiles(slot, row_block, {row_block.lo, row_block.end(0)}, {0, vectors}, vectors, columns, prefetch);
  if (row_block.row_ends.empty()) return;
  for (int v = 1; v < vectors; ++v)
    tiles(slot, row_block, {row_block.end(v - 1), row_block.end(v)}, {v, vectors}, vectors, columns, prefetch);
}

/// Computes a range of columns for vectors first .. last of the rows; `packed` is the number of packed vectors.
void AttentionScore::tiles(const ScratchMatrix& slot, const RowBlockPosition& row_block,
                           std::pair<Value, Value> range, std::pair<int, int> vectors, int packed, Value columns,
                           const kernel::Builder::Body& prefetch) {
  const int first = vectors.first, lanes = tile_.lanes;
  RegisterTile tile = tile_;
  tile.vectors = vectors.second - first;
  b_.for_loop(range.first, range.second, tile.rows, [&](Value column) {
    prefetch(column);
    std::vector<Value> positions;
    for (int r = 0; r < tile.rows; ++r) positions.push_back(r == 0 ? column : min(column + r, columns - 1));
    const auto element = [&](Value k, int r) {
      const Value position = positions[r], depth = k * step();
      if (staged_columns_)
        return b_.load(staged_columns_->buffer, position * staged_columns_->stride + depth, step());
      return b_.cast(columns_.load(row_block.outer, position, depth, LaneAxis::k, step(), {}), dtype());
    };
    const auto vector = [&](Value k, int v) {
      const Value at = k * (packed * lanes) + (first + v) * lanes;
      return b_.load(packed_rows_.buffer, at * step(), lanes * step(), {}, bytes());
    };
    const auto sink = [&](int r, int v, Value sum) {
      b_.store(slot.buffer, (column + r) * slot.stride + (first + v) * lanes, sum, {}, bytes());
    };
    const Value steps = context_.dim(part_.pairs ? Dim(*part_.depth.value() / 2) : part_.depth);
    emit_register_tile(b_, tile, b_.index(0), steps, element, vector, {}, sink);
  });
}

}  // namespace lathe::cpu
