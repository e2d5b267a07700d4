#include "passes/gpu/attention_scores.h"

#include <algorithm>

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

AttentionScores::Product::Product(KernelContext& context, const LoweringContext& lowering,
                                  const AttentionParts::Score& score, const AttentionTile& tile)
    : part(score),
      row_loader(context, lowering, score.rows, tile.compute),
      column_loader(context, lowering, score.columns, tile.compute),
      rows(row_loader, tile, true, tile.span()),
      columns(column_loader, tile, true, tile.span()) {}

AttentionScores::AttentionScores(KernelContext& context, const LoweringContext& lowering, const AttentionParts& parts)
    : context_(context), b_(context.builder), tile_{parts.compute} {
  for (const AttentionParts::Score& score : parts.scores) {
    products_.push_back(std::make_unique<Product>(context, lowering, score, tile_));
    shared_[0] = std::max(shared_[0], products_.back()->rows.shared_elements());
    shared_[1] = std::max(shared_[1], products_.back()->columns.shared_elements());
  }
}

void AttentionScores::add_programs(std::vector<const PointProgram*>& programs) const {
  for (const auto& p : products_)
    programs.insert(programs.end(), {&p->part.rows.code.program, &p->part.columns.code.program});
}

void AttentionScores::hoist() {
  for (auto& p : products_) {
    p->row_loader.hoist();
    p->column_loader.hoist();
  }
}

void AttentionScores::pass_through(kernel::Buffer left, kernel::Buffer right) {
  for (auto& p : products_) {
    p->rows.pass_through(left);
    p->columns.pass_through(right);
  }
}

void AttentionScores::begin() {
  for (auto& p : products_) {
    p->rows.begin();
    p->columns.begin();
    p->sums = zero_vectors(b_, {tile_.compute, tile_.own()}, tile_.own());
  }
}

AttentionScores::Product& AttentionScores::product(int value) {
  const auto at = std::find_if(products_.begin(), products_.end(), [&](auto& p) { return p->part.value == value; });
  LATHE_ASSERT(at != products_.end());
  return **at;
}

void AttentionScores::multiply(int value, Value outer, Value row, Value column, const AttentionThread& thread) {
  Product& p = product(value);
  constexpr int steps = AttentionTile::steps;
  const int own = tile_.own();
  const Value slot = thread.slot;
  const auto bring = [&](Value first_step) {
    p.rows.bring(outer, row, first_step, slot);
    p.columns.bring(outer, column, first_step, slot);
  };
  clear(b_, p.sums);
  bring(b_.index(0));
  b_.for_loop(0, context_.dim(p.part.depth), steps, [&](Value first_step) {
    p.rows.put(slot);
    p.columns.put(slot);
    b_.barrier();
    bring(first_step + steps);  // under way while these are multiplied
    const auto step = [&](Value k) {
      multiply_add(b_, p.sums, p.rows.load(k, thread.y * own, own), {p.columns.load(k, thread.x * own, own)});
    };
    b_.for_loop(0, steps, 1, step, LoopKind::unroll);
    b_.barrier();
  });
}

Value AttentionScores::sum(int value, int r) { return b_.get(product(value).sums[static_cast<std::size_t>(r)]); }

}  // namespace lathe::gpu
