#pragma once

#include <optional>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::cpu {

/// A sum or maximum over a row that only picks one of its elements: where(column == i, value, identity) with one
/// number i per row, as for the logit of a target. It needs no loop over the row.
struct RowPick {
  int column;  ///< the instruction that gives i, which may be out of range
  int value;   ///< the instruction that gives the element
};

/// Returns the pick that the reduction `instruction` is equivalent to, if any. `inner`: the domain dim of the
/// columns.
std::optional<RowPick> row_pick(const ElementwiseProgram& program, int instruction, int inner);

}  // namespace lathe::cpu
