#pragma once

#include <vector>

#include "passes/cpu/attention/blocks/row_block_loops.h"
#include "passes/lowering/attention/attention_operand.h"

namespace lathe::cpu {

/// Prefetches the operands of an attention's next row block while the current one is computed: its rows and, if it
/// belongs to the next outer index, also the columns. Data prefetched past the last outer index is not used.
class PrefetchRows {
 public:
  /// Ignores operands whose elements are prefetched already.
  void add(OperandLoader& loader);
  /// Emits the prefetches for columns `column` .. + `tile` of a row block of `block_rows` rows, out of `rows` in
  /// total.
  void emit(const RowBlockPosition& row_block, kernel::Value column, int tile, int block_rows, kernel::Value rows);

 private:
  std::vector<OperandLoader*> rows_, columns_;
};

}  // namespace lathe::cpu
