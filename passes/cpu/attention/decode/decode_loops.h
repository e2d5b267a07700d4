#pragma once

#include <functional>
#include <vector>

#include "passes/cpu/attention/operand_copies.h"
#include "passes/cpu/cpu_context.h"
#include "passes/lowering/attention/row_block_plan.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe::cpu {

/// Runs the elementwise program of an attention over the columns of one row: slot[row][column], lanes along the
/// columns. Reductions accumulate a partial result per lane; the lanes are combined at the end of a loop.
class DecodeLoops {
 public:
  struct Shape {
    std::vector<int> outer;  ///< domain dims
    int row_dim, columns_dim;
    int lanes;
  };
  DecodeLoops(ElementwiseEmitter& emitter, const RowBlockPlan& plan, Shape shape, std::vector<ScratchMatrix> slots)
      : emitter_(emitter), plan_(plan), shape_(std::move(shape)), slots_(std::move(slots)) {}

  const ScratchMatrix& slot(int value) const { return slots_[plan_.slot_of(value)]; }

  /// Columns lo .. hi, which are stored in the slots from 0 on.
  struct Columns {
    kernel::Value lo, hi;
  };
  /// Maps the result of a reduction to the value that later instructions use.
  using Reduced = std::function<kernel::Value(int reduction, kernel::Value found)>;
  /// Runs all loops over the columns and binds the reductions in the scope of the row.
  void run(kernel::Value outer, kernel::Value row, const Columns& columns, ElementwiseEmitter::Scope& row_scope,
           const Reduced& reduced);
  /// Stores values that do not vary along the columns.
  void store_row(ElementwiseEmitter::Scope& row_scope);

 private:
  void loop(const RowBlockPlan::Loop& loop, kernel::Value outer, kernel::Value row, const Columns& columns,
            ElementwiseEmitter::Scope& row_scope, const Reduced& reduced);
  void point(const RowBlockPlan::Loop& loop, ElementwiseEmitter::Scope& scope, kernel::Value row, kernel::Value at,
             const std::vector<kernel::Var>& accumulators);

  ElementwiseEmitter& emitter_;
  const RowBlockPlan& plan_;
  Shape shape_;
  std::vector<ScratchMatrix> slots_;
};

}  // namespace lathe::cpu
