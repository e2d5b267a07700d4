#pragma once

#include <optional>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::cpu {

/// A sum or maximum over a row that only picks one of its elements: of where(column == i, value, identity), with one
/// number i a row, as the logit of a target. It takes no loop over the row.
struct RowPick {
  int column;  ///< the instruction that gives i, which may lie outside the row
  int value;   ///< the instruction that gives the element
};

/// The pick that the reduction `instruction` amounts to, if it is one. `inner`: the domain dim of the columns.
std::optional<RowPick> row_pick(const ElementwiseProgram& program, int instruction, int inner);

}  // namespace lathe::cpu
