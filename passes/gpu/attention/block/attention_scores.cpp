#include "passes/gpu/attention/block/attention_scores.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/mma.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

AttentionScores::Product::Product(KernelContext& context, const GpuContext& lowering,
                                  const AttentionParts::Score& score, const AttentionTile& tile)
    : part(score),
      row_loader(context, lowering, score.rows, tile.compute),
      column_loader(context, lowering, score.columns, tile.compute),
      rows(row_loader, tile, true, tile.span()),
      columns(column_loader, tile, true, tile.span()),
      steps{{&rows, &columns}, score.depth} {
  if (score.depth.value().value_or(0) == 0) return;
  const bool left = rows.can_be_copied(), right = columns.can_be_copied();
  if (!left && !right) return;
  const int count = copied_steps(lowering.tuned.attention, tile, tile.span(), true, score.depth);
  rows.pass(count, left);
  columns.pass(count, right);
}

AttentionScores::AttentionScores(KernelContext& context, const GpuContext& lowering, const AttentionParts& parts,
                                 const AttentionTile& tile, AttentionSteps& steps)
    : context_(context), b_(context.builder), tile_(tile), steps_(steps) {
  for (const AttentionParts::Score& score : parts.scores) {
    products_.push_back(std::make_unique<Product>(context, lowering, score, tile_));
    shared_[0] = std::max(shared_[0], products_.back()->rows.shared_elements());
    shared_[1] = std::max(shared_[1], products_.back()->columns.shared_elements());
  }
}

void AttentionScores::add_programs(std::vector<const ElementwiseProgram*>& programs) const {
  for (const auto& p : products_)
    programs.insert(programs.end(), {&p->part.rows.code.program, &p->part.columns.code.program});
}

void AttentionScores::hoist() {
  for (auto& p : products_) {
    p->row_loader.hoist();
    p->column_loader.hoist();
  }
}

void AttentionScores::pass_through(kernel::Buffer left, kernel::Buffer right, std::int64_t slot,
                                   kernel::Buffer exchange) {
  exchange_ = exchange;
  for (auto& p : products_) {
    p->rows.pass_through(left, left_elements());
    p->columns.pass_through(right, slot);
  }
}

void AttentionScores::begin() {
  for (auto& p : products_) {
    p->rows.begin({});
    p->columns.begin({});
    p->sums = zero_vectors(b_, {tile_.compute, tile_.own()}, tile_.own());
  }
}

AttentionScores::Product& AttentionScores::product(int value) {
  const auto at = std::find_if(products_.begin(), products_.end(), [&](auto& p) { return p->part.value == value; });
  LATHE_ASSERT(at != products_.end());
  return **at;
}

void AttentionScores::multiply(int value, const AttentionThread& thread) {
  Product& p = product(value);
  if (tile_.tensor_cores()) return multiply_by_tensor_cores(p, thread);
  const int own = tile_.own();
  clear(b_, p.sums);
  const auto step = [&](Value k) {
    multiply_add(b_, p.sums, p.rows.load(k, thread.y * own, own), {p.columns.load(k, thread.x * own, own)});
  };
  steps_.run(p.steps, thread.slot, [&](Value, Value) { b_.for_loop(0, p.steps.steps(), 1, step, LoopKind::unroll); });
}

void AttentionScores::multiply_by_tensor_cores(Product& p, const AttentionThread& thread) {
  const WarpPart part(thread.slot, tile_.span());
  const int own = tile_.own(), stride = exchange_stride();
  const kernel::Var sums = zero_vectors(b_, {f32, 2 * part.pairs()}, 1)[0];
  steps_.run(p.steps, thread.slot, [&](Value slot, Value) {
    for (int k = 0; k < p.steps.steps(); k += kernel::mma_depth)
      b_.set(sums, mma(b_, p.rows.matrix(slot, k, part.row, WarpPart::rows),
                       p.columns.matrix(slot, k, part.column, part.columns), b_.get(sums)));
  });
  for (int i = 0; i < part.pairs(); ++i) {
    const Value pair = b_.index(i);
    b_.store(exchange_, part.pair_row(pair) * stride + part.pair_column(pair), b_.slice(b_.get(sums), 2 * i, 2));
  }
  b_.barrier();
  for (int r = 0; r < own; ++r)
    b_.set(p.sums[r], b_.load(exchange_, (thread.y * own + r) * stride + thread.x * own, own));
  b_.barrier();
}

Value AttentionScores::sum(int value, int r) { return b_.get(product(value).sums[r]); }

}  // namespace lathe::gpu
