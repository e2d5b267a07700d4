#pragma once

#include "ir/machine/cpu_info.h"
#include "passes/lowering/attention/attention_parts.h"
#include "passes/lowering/attention/row_block_plan.h"

namespace lathe::cpu {

/// How many columns a kernel with sums over rows takes all rows through before it goes on to the next columns, so
/// that these columns' operands and sums stay in L2; a multiple of `multiple`. 0: all columns of a
/// row block at once, where that all stays there or something must be known of a whole row first.
int block_columns(const AttentionParts& parts, const RowBlockPlan& plan, const Dim& columns, int block_rows,
                  int multiple, const CpuInfo& cpu);

}  // namespace lathe::cpu
