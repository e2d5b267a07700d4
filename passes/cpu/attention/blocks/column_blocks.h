#pragma once

#include "ir/hardware/cpu_info.h"
#include "passes/lowering/attention/attention_parts.h"
#include "passes/lowering/attention/row_block_plan.h"

namespace lathe::cpu {

/// Returns how many columns a kernel with sums over rows processes for all rows at a time, so that these columns'
/// operands and sums stay in L2; a multiple of `multiple`. Returns 0 to process all columns of a row block at once:
/// if everything fits into L2, or if a value depends on a whole row.
int block_columns(const AttentionParts& parts, const RowBlockPlan& plan, const Dim& columns, int block_rows,
                  int multiple, const CpuInfo& cpu);

}  // namespace lathe::cpu
