#pragma once

#include <map>
#include <vector>

#include "passes/gpu/attention/block/attention_tile.h"
#include "passes/lowering/attention/attention_program.h"
#include "passes/lowering/attention/online_softmax.h"
#include "passes/lowering/attention/row_block_plan.h"

/// Fused attention for blocks of threads. Scores are never stored: a block makes them tile by tile, once where one
/// loop over the columns computes the softmax (see OnlineSoftmax), else again in every loop that it asks for.
///
///   maxima:     the largest elements of the operands, where columns can be left out: see column_bounds.h
///   rows:       a block for each row block goes through their columns: reductions, results over rows
///   columns:    where products sum over rows: a block for each column block goes through the rows, whose
///               reductions it finds in memory
///   outer reductions: where outer dims share a bias, its gradient: a block for each of its tiles goes through these
///               dims
namespace lathe::gpu {

/// What the kernels of one attention have in common.
struct AttentionPlan {
  AttentionPlan(const LoweringContext& context, const Region& region);
  AttentionPlan(const AttentionPlan&) = delete;
  AttentionPlan& operator=(const AttentionPlan&) = delete;

  const LoweringContext& lowering;
  AttentionProgram attention;  ///< all outer dims but the sequential ones are parallel; without the stores of sums
  std::vector<ElementwiseStore> outer_reductions;
  std::optional<OnlineSoftmax> online;
  RowBlockPlan row_blocks;  ///< with no memory but registers
  AttentionTile tile;

  /// Says that a kernel of its own makes the products over columns: it needs what their rows reduce to as well.
  void take_outputs_over_columns();
  bool outputs_over_columns_taken = false;

  Dim outer() const { return attention.parts.parallel * attention.parts.sequential; }
  /// At least as many blocks as so many rows or columns have.
  Dim blocks_of(const Dim& positions) const;

  // Program buffers that go from kernel to kernel.
  std::map<int, int> row_values;  ///< by value of each row that kernels after that of the rows need: [outer][row]
  int skips = -1;                 ///< bool [outer][row block]: whether its columns may be left out
  struct OperandMaximum {
    const AttentionOperand* operand;
    int buffer;  ///< [outer][block of positions]: the largest magnitude of its elements
  };
  std::vector<OperandMaximum> maxima;
  /// That of an operand, or of one with the same elements.
  const OperandMaximum& maximum(const AttentionOperand& operand) const;

 private:
  void keep(const std::vector<int>& values);
};

KernelContext::Built lower_operand_maxima(const AttentionPlan& plan);
KernelContext::Built lower_attention_rows(const AttentionPlan& plan);
KernelContext::Built lower_attention_columns(const AttentionPlan& plan);
/// `sums`: some of the plan's that go over the same outer dims.
KernelContext::Built lower_attention_outer_reductions(const AttentionPlan& plan,
                                                      const std::vector<ElementwiseStore>& sums);

}  // namespace lathe::gpu
