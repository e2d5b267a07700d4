#pragma once

#include "passes/cpu/gemm/gemm.h"

/// Implementations of the strategies of emit_gemm.
namespace lathe::cpu {

/// Register tiles over blocks of k. A task keeps its mc x nc sums in scratch between blocks. After the last one it
/// passes row blocks of mr rows to the epilogue, while they are in cache.
void emit_blocked_gemm(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                       const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch);

/// Results m0 .. m1 x n0 .. n1 of a batch.
struct GemmTask {
  kernel::Value batch, m0, m1, n0, n1;
};
/// Returns the size of about equal blocks that cover `size`: a multiple of `step`, at most `limit`.
kernel::Value block_size(kernel::Builder& b, kernel::Value size, kernel::Value limit, int step);
/// Returns the rows of a task in whole units: at most mc, and less if the plan's cores then finish earlier and the
/// start of more tasks takes little time.
kernel::Value rows_for_tasks(kernel::Builder& b, const GemmSizes& sizes, kernel::Value column_blocks,
                             const GemmPlan& plan, int unit);
/// Emits a parallel loop over blocks of rows x columns of all batches. Blocks of the same rows are adjacent; with
/// sizes.actual, blocks of the same columns.
void for_each_task(kernel::Builder& b, const GemmSizes& sizes, kernel::Value rows, kernel::Value columns,
                   const std::function<void(const GemmTask&)>& body);

/// Steps k0 .. k0 + depth of a task, which are pairs if the tile's are.
struct GemmPass {
  kernel::Value k0, depth, continues, last;  ///< continues, last: booleans
};
/// Emits a loop over `steps` of k in `passes` of at most kc, in order.
void for_each_pass(kernel::Builder& b, kernel::Value steps, kernel::Value passes, int kc,
                   const std::function<void(const GemmPass&)>& body);

/// Blocks of 32 x 32 sums of bf16 by tile_mma, over blocks of k. Sums stay in scratch between these, and each row
/// block of 32 rows goes to the epilogue after the last one.
void emit_tile_gemm(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                    const GemmOperand& rhs, const Epilogue& epilogue);

/// Few rows, both operands contiguous in k: mr x nv dot products at a time with lanes along k, which are added up at
/// the end. Reads the right operand once and packs nothing.
void emit_skinny_dot(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                     const GemmOperand& rhs, const Epilogue& epilogue);

}  // namespace lathe::cpu
