#pragma once

#include <map>
#include <vector>

#include "passes/gpu/attention/block/attention_tile.h"
#include "passes/gpu/gpu_context.h"
#include "passes/lowering/attention/attention_program.h"
#include "passes/lowering/attention/online_softmax.h"
#include "passes/lowering/attention/row_block_plan.h"

/// Fused attention for thread blocks. Scores are never stored: a block computes them one tile at a time. It does so
/// once if a single loop over the columns computes the softmax (see OnlineSoftmax), otherwise again in every loop
/// that needs them.
///
///   maxima:     the largest elements of the operands, if columns can be skipped: see column_bounds.h
///   rows:       a block per row block iterates over its columns: reductions, results over rows
///   columns:    if matmuls sum over rows: a block per column block iterates over the rows, whose
///               reductions it reads from memory
///   outer reductions: if outer dims share a bias, its gradient: a block per tile iterates over these dims
namespace lathe::gpu {

/// Data that the kernels of one attention share.
struct AttentionPlan {
  AttentionPlan(const GpuContext& context, const Region& region);
  AttentionPlan(const AttentionPlan&) = delete;
  AttentionPlan& operator=(const AttentionPlan&) = delete;

  const GpuContext& lowering;
  /// All outer dims except the sequential ones are parallel; the stores of sums are removed.
  AttentionProgram attention;
  std::vector<ElementwiseStore> outer_reductions;
  std::optional<OnlineSoftmax> online;
  RowBlockPlan row_blocks;  ///< keeps values in registers only
  AttentionTile tile;

  /// Declares that a separate kernel computes the matmuls over columns; it needs the reductions of their rows as
  /// well.
  void take_outputs_over_columns();
  bool outputs_over_columns_taken = false;

  Dim outer() const { return attention.parts.parallel * attention.parts.sequential; }
  /// Returns an upper bound on the number of blocks for this many rows or columns.
  Dim blocks_of(const Dim& positions) const;

  // Program buffers that kernels share.
  /// By value of each row that kernels after the kernel of the rows need: [outer][row].
  std::map<int, int> row_values;
  int skips = -1;  ///< bool [outer][row block]: whether its columns may be skipped
  struct OperandMaximum {
    const AttentionOperand* operand;
    int buffer;  ///< [outer][block of positions]: the largest magnitude of its elements
  };
  std::vector<OperandMaximum> maxima;
  /// Returns the maximum of an operand, or of one with the same elements.
  const OperandMaximum& maximum(const AttentionOperand& operand) const;

 private:
  void keep(const std::vector<int>& values);
};

KernelContext::Built lower_operand_maxima(const AttentionPlan& plan);
KernelContext::Built lower_attention_rows(const AttentionPlan& plan);
KernelContext::Built lower_attention_columns(const AttentionPlan& plan);
/// `sums`: those of the plan's outer reductions that go over the same outer dims.
KernelContext::Built lower_attention_outer_reductions(const AttentionPlan& plan,
                                                      const std::vector<ElementwiseStore>& sums);

}  // namespace lathe::gpu
