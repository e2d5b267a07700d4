#pragma once

#include <vector>

#include "passes/cpu/attention/row_block_loops.h"
#include "passes/lowering/attention/attention_operand.h"

namespace lathe::cpu {

/// Prefetches the operands of an attention's next row block while one is computed: its rows, and where it is of the
/// next outer index the columns too. Beyond the last outer index it prefetches what nobody reads.
class PrefetchRows {
 public:
  /// Operands whose elements are prefetched already count once.
  void add(OperandLoader& loader);
  /// The part that goes with columns `column` .. + `tile` of a row block of `block_rows` rows, out of `rows` in all.
  void emit(const RowBlockPosition& row_block, kernel::Value column, int tile, int block_rows, kernel::Value rows);

 private:
  std::vector<OperandLoader*> rows_, columns_;
};

}  // namespace lathe::cpu
