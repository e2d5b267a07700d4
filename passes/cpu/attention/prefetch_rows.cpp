#include "passes/cpu/attention/prefetch_rows.h"

#include <algorithm>

namespace lathe::cpu {

using kernel::Value;

void PrefetchRows::add(OperandLoader& loader) {
  std::vector<OperandLoader*>& list = loader.operand().by_column ? columns_ : rows_;
  const auto same = [&](const OperandLoader* other) { return same_elements(other->operand(), loader.operand()); };
  if (std::none_of(list.begin(), list.end(), same)) list.push_back(&loader);
}

void PrefetchRows::emit(const RowBlockPosition& row_block, Value column, int tile, int block_rows, Value rows) {
  if (rows_.empty()) return;
  kernel::Builder& b = rows_[0]->context().builder;
  const Value next = row_block.row + block_rows, along = column - row_block.lo, wraps = next >= rows;
  const Value outer = b.select(wraps, row_block.outer + 1, row_block.outer);
  const auto prefetch = [&](const std::vector<OperandLoader*>& loaders, Value first) {
    b.for_loop(0, tile, 1, [&](Value r) {
      for (OperandLoader* loader : loaders) loader->prefetch(outer, first + r);
    });
  };
  b.if_(along < block_rows, [&] { prefetch(rows_, b.select(wraps, b.index(0), next) + along); });
  b.if_(wraps, [&] { prefetch(columns_, column); });
}

}  // namespace lathe::cpu
