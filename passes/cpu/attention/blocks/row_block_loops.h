#pragma once

#include <functional>
#include <memory>

#include "passes/cpu/attention/operand_copies.h"
#include "passes/cpu/cpu_context.h"
#include "passes/lowering/attention/row_block_plan.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe::cpu {

/// Rows `row` .. of one outer index and the columns lo .. hi that are computed for them.
struct RowBlockPosition {
  kernel::Value outer, row, lo, hi;
  kernel::Value skips = {};  ///< whether columns are skipped: see column_bounds.h; empty: never
  /// Per vector of rows: the end of the columns that it needs, ascending, the last one hi. Empty: hi for all.
  std::vector<kernel::Value> row_ends = {};
  kernel::Value inside = {};  ///< with row_ends: columns before this are before every row's diagonal

  kernel::Value end(int vector) const { return row_ends.empty() ? hi : row_ends[vector]; }
};

/// Runs the elementwise program of an attention over a row block: slot[column][row], lanes along the rows, so that
/// reductions along the columns are plain vector arithmetic.
class RowBlockLoops {
 public:
  struct Shape {
    std::vector<int> outer;  ///< domain dims
    int row_dim, columns_dim;
    int lanes;
  };
  /// Comparisons and their values before the diagonal.
  using Decided = std::vector<std::pair<int, bool>>;
  RowBlockLoops(ElementwiseEmitter& emitter, const RowBlockPlan& plan, Shape shape, std::vector<ScratchMatrix> slots,
                Decided inside)
      : emitter_(emitter),
        plan_(plan),
        shape_(std::move(shape)),
        slots_(std::move(slots)),
        inside_(std::move(inside)) {}

  const ScratchMatrix& slot(int value) const { return slots_[plan_.slot_of(value)]; }

  /// The scopes of the vectors of rows; the loops over their columns bind the reductions there.
  using Rows = std::vector<std::unique_ptr<ElementwiseEmitter::Scope>>;
  /// Runs all loops over the columns for `vectors` vectors of rows. `row_count`: the number of rows of the attention.
  Rows run(const RowBlockPosition& row_block, kernel::Value row_count, int vectors,
           const ElementwiseEmitter::Scope& top);
  /// Stores values that do not vary along the columns.
  void store_rows(Rows& rows);

 private:
  void loop(const RowBlockPlan::Loop& loop, const RowBlockPosition& row_block, Rows& rows);
  struct Block {
    kernel::Value lo, hi;  ///< columns
    int first;             ///< first vector of rows; all later ones are included
    bool inside;           ///< before the diagonal of every row
  };
  std::vector<Block> blocks(const RowBlockPosition& row_block, int vectors) const;
  void block(const RowBlockPlan::Loop& loop, const RowBlockPosition& row_block, const Block& part, Rows& rows,
             const std::vector<std::vector<kernel::Var>>& accumulators);
  void store(const ElementwiseStore& store, ElementwiseEmitter::Scope& scope);
  kernel::Value is_first(int value, const RowBlockPosition& row_block);
  void point(const RowBlockPlan::Loop& loop, ElementwiseEmitter::Scope& scope, kernel::Value column, int vector,
             const std::vector<kernel::Var>& accumulators);

  ElementwiseEmitter& emitter_;
  const RowBlockPlan& plan_;
  Shape shape_;
  std::vector<ScratchMatrix> slots_;
  Decided inside_;
};

}  // namespace lathe::cpu
