#include "passes/cpu/attention/attention_products.h"

#include <algorithm>

#include "passes/lowering/attention/tile_skip_check.h"

namespace lathe::cpu {

using kernel::Value;

std::set<int> bf16_results(const AttentionProgram& attention) {
  std::set<int> found;
  for (const AttentionParts::OutputProduct& output : attention.parts.outputs)
    if (output.pairs || (output.is_bf16 && attention.tiled)) found.insert(output.value);
  return found;
}

AttentionProducts::AttentionProducts(KernelContext& context, const CpuContext& lowering,
                                     const AttentionProgram& attention, const RegisterTile& tile)
    : context_(context), attention_(attention), lanes_(tile.lanes) {
  for (const AttentionParts::Score& part : attention.parts.scores)
    scores_.push_back(std::make_unique<AttentionScore>(context, lowering, part, tile, attention.tiled));
  for (const AttentionParts::OutputProduct& part : attention.parts.outputs)
    outputs_.push_back(
        std::make_unique<AttentionOutput>(context, lowering, part, tile, attention.bounds, attention.tiled));
}

void AttentionProducts::over_rows(const std::function<void(AttentionOutput&)>& body) const {
  for (const auto& output : outputs_)
    if (output->part().over_rows) body(*output);
}

void AttentionProducts::over_columns(const std::function<void(AttentionOutput&)>& body) const {
  for (const auto& output : outputs_)
    if (!output->part().over_rows) body(*output);
}

void AttentionProducts::for_each_operand(const std::function<void(OperandLoader&)>& body) const {
  for (const auto& score : scores_) {
    body(score->rows());
    body(score->columns());
  }
  for (const auto& output : outputs_) body(output->other());
}

bool AttentionProducts::splits_bf16() const {
  const auto is_split = [](const auto& product) { return product->tiled()->split_bf16(); };
  return std::any_of(scores_.begin(), scores_.end(), is_split) ||
         std::any_of(outputs_.begin(), outputs_.end(), is_split);
}

Multiplier AttentionProducts::multiplier() const {
  if (attention_.tiled) return splits_bf16() ? Multiplier::split_bf16 : Multiplier::tile_mma;
  const AttentionParts& parts = attention_.parts;
  const auto pairs = [](const auto& product) { return product.pairs; };
  return std::any_of(parts.scores.begin(), parts.scores.end(), pairs) ||
                 std::any_of(parts.outputs.begin(), parts.outputs.end(), pairs)
             ? Multiplier::dot_pairs
             : Multiplier::fma;
}

std::vector<const ElementwiseProgram*> AttentionProducts::programs() const {
  std::vector<const ElementwiseProgram*> programs;
  for (const auto& score : scores_)
    programs.insert(programs.end(), {&score->part().rows.code.program, &score->part().columns.code.program});
  for (const auto& output : outputs_)
    programs.insert(programs.end(), {&output->part().epilogue, &output->part().other.code.program});
  return programs;
}

void AttentionProducts::allocate_split_sums(AttentionScratch& scratch) {
  if (attention_.tiled && splits_bf16()) exact_.emplace(context_.builder, scratch.split_sums());
  scratch.set_exact(exact_ ? &*exact_ : nullptr);
}

void AttentionProducts::allocate(AttentionScratch& scratch) {
  for (const auto& score : scores_) scratch.give_to(*score);
  for (const auto& output : outputs_) scratch.give_to(*output);
}

void AttentionProducts::stage(Value outer, Value columns) const {
  for (const auto& score : scores_) score->stage_columns(outer, columns);
  for (const auto& output : outputs_) output->stage_columns(outer, columns);
}

Value AttentionProducts::largest_score(Value outer, const Range& rows, Value columns) const {
  std::vector<std::pair<const AttentionOperand*, Value>> known;  // products share operands
  const auto largest = [&](OperandLoader& loader) {
    for (const auto& [operand, found] : known)
      if (same_elements(*operand, loader.operand())) return found;
    kernel::Builder& b = context_.builder;
    const bool by_column = loader.operand().by_column;
    const Value found = largest_magnitude(b, loader, outer, by_column ? b.index(0) : rows.first,
                                          by_column ? columns : rows.second, lanes_);
    known.emplace_back(&loader.operand(), found);
    return found;
  };
  return largest_score_bound(context_, attention_.parts, attention_.bounds,
                             [&](const AttentionOperand& operand) -> Value {
                               OperandLoader* found = nullptr;
                               for_each_operand([&](OperandLoader& loader) {
                                 if (!found && &loader.operand() == &operand) found = &loader;
                               });
                               if (!found) throw InternalError("an operand of no product of the attention");
                               return largest(*found);
                             });
}

}  // namespace lathe::cpu
